"""Whether answers have what an OpenAPI document says, and nothing else. Deploy/check-api asks it."""
import json
import re

import jsonschema
import referencing.jsonschema

from gateway import claims

PROBLEM = "application/problem+json"

# What is documented and need not come, with the reason: statuses, and patterns of fields.
UNSEEN_STATUSES = {
    429: "takes more requests than the default rates allow",
    503: "takes a full disk, a full queue or a gateway that stops",
}
UNSEEN_FIELDS = {
    r"schemas/(Widget|Set|Control|Activity)Standing\.into":
        "takes a change that comes between two looks of one explanation",
    r"schemas/ActivityStanding\.until": "takes a push that waits, and nothing else of it does",
    r"schemas/ExplainedClient\.addresses/items/anyOf/0\.unusable":
        "takes an APNs that says a token is dead",
    r"schemas/ExplainedClient\.addresses/items/anyOf/0\.budget\.refillsAt":
        "takes an APNs that takes pushes",
    r"schemas/ExplainedClient\.addresses/items/anyOf/0\.problem":
        "takes an APNs that says a token is of another topic",
    r"schemas/ExplainedClient\.addresses/items/anyOf/2\.unusable":
        "takes a browser's push service that rejects the gateway's key",
    r"schemas/ExplainedClient\.addresses/items/anyOf/3\.unusable": "takes an FCM that answers",
    r"schemas/ExplainedClient\.removedAddresses.*": "takes an APNs that says a token is dead",
    r"schemas/StartTaken\.channels(\..*)?": "takes an APNs that creates channels",
    r"schemas/Overview\.cluster(\..*)?": "takes a gateway that shares its log with others",
    r"schemas/Outcomes\.collapsedInto/items\..*":
        "a change that is not made is not overtaken by another",
}


class Contract:
    """One port's document, and what was seen of it."""

    # Of HTTP itself, and of what a browser asks, not of a route.
    GENERAL = {
        "date", "content-type", "content-length", "transfer-encoding", "connection", "vary",
        "access-control-allow-origin", "access-control-expose-headers"}

    def __init__(self, name, document, fields):
        """fields: those seen so far; both ports' documents have the same ones."""
        self.name, self.document = name, document
        self.faults, self.seen, self.fields = [], set(), fields
        resource = referencing.jsonschema.DRAFT202012.create_resource(document)
        self.registry = referencing.Registry().with_resource("urn:document", resource)
        self.formats = jsonschema.FormatChecker(formats=[])
        moment = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
        self.formats.checks("date-time")(
            lambda text: not isinstance(text, str) or bool(moment.fullmatch(text)))
        self.operations = {}
        for path, methods in document["paths"].items():
            steps = ["[^/]+" if step[:1] == "{" else re.escape(step) for step in path.split("/")]
            pattern = re.compile("/".join(steps))
            for method, operation in methods.items():
                self.operations[method.upper(), path] = (pattern, operation)

    def fault(self, what):
        text = f"{self.name}: {what}"
        if text not in self.faults:
            self.faults.append(text)

    def at(self, pointer):
        """The part of the document at a JSON pointer."""
        part = self.document
        for step in pointer[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            part = part[int(step)] if isinstance(part, list) else part[step]
        return part

    def resolved(self, pointer):
        """Where a reference leads."""
        while "$ref" in self.at(pointer):
            pointer = self.at(pointer)["$ref"]
        return pointer

    def below(self, pointer, *steps):
        for step in steps:
            pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
        return pointer

    def is_valid(self, pointer, value):
        return next(self.errors(pointer, value), None) is None

    def errors(self, pointer, value):
        return jsonschema.Draft202012Validator(
            {"$ref": "urn:document" + pointer}, registry=self.registry, format_checker=self.formats
        ).iter_errors(value)

    def parts(self, pointer):
        """What a schema is made of: (kind, name, pointer)."""
        schema = self.at(pointer)
        for name in schema.get("properties", {}):
            yield "member", name, self.below(pointer, "properties", name)
        if "items" in schema:
            yield "element", None, self.below(pointer, "items")
        if isinstance(schema.get("additionalProperties"), dict):
            yield "value", None, self.below(pointer, "additionalProperties")
        for place, _ in enumerate(schema.get("anyOf", [])):
            yield "choice", place, self.below(pointer, "anyOf", place)
        if schema.get("contentMediaType") == "application/jwt":
            yield "claims", None, self.below(pointer, "contentSchema", "prefixItems", 1)

    def follow(self, pointer, value):
        """Notes which fields a value has."""
        pointer = self.resolved(pointer)
        known = {n for k, n, _ in self.parts(pointer) if k == "member"}
        for kind, name, part in self.parts(pointer):
            if kind == "member" and isinstance(value, dict) and name in value:
                self.fields.add(part)
                self.follow(part, value[name])
            elif kind == "element" and isinstance(value, list):
                for element in value:
                    self.follow(part, element)
            elif kind == "value" and isinstance(value, dict):
                for name, member in value.items():
                    if name not in known:
                        self.follow(part, member)
            elif kind == "choice" and self.is_valid(part, value):
                self.follow(part, value)
            elif kind == "claims" and isinstance(value, str):
                self.judge_claims(part, value)

    def declared(self, pointer, found):
        """Every field that a schema has."""
        pointer = self.resolved(pointer)
        if pointer in found[0]:
            return
        found[0].add(pointer)
        for kind, _, part in self.parts(pointer):
            if kind == "member":
                found[1].add(part)
            self.declared(part, found)

    # MARK: Judging

    def operation(self, method, path):
        """The operation of a request; a path that names its route goes before one that does not."""
        found = [
            (path_name.count("{"), path_name)
            for (verb, path_name), (pattern, _) in self.operations.items()
            if pattern.fullmatch(path) and verb == method]
        return min(found)[1] if found else None

    def judge(self, method, target, status, headers, body):
        """Holds one exchange against the document."""
        path = target.split("?")[0]
        what = f"{method} {path} answers {status}"
        is_head = method == "HEAD"
        if is_head and body:
            self.fault(f"{what} with a body")
        # It is answered as GET is, and documented with it.
        method = "GET" if is_head else method
        name = self.operation(method, path)
        fields = {}
        for field, value in headers:
            fields.setdefault(field.lower(), value)
        if name is None:
            self.judge_stray(what, method, path, status, fields, body)
            return
        response = self.below(
            "#", "paths", name, method.lower(), "responses", str(status))
        try:
            pointer = self.resolved(response)
        except KeyError:
            self.fault(f"{what}, which is not in the document: {body[:200]!r}")
            return
        what = f"{method} {name} answers {status}"
        self.seen.add((method, name, status))
        answer = self.at(pointer)
        documented = {field.lower(): header for field, header in answer.get("headers", {}).items()}
        for field in fields:
            if field not in documented and field not in self.GENERAL:
                self.fault(f"{what} with the header {field}, which is not in the document")
        for field, header in documented.items():
            if field not in fields:
                header = self.at(header["$ref"]) if "$ref" in header else header
                if header["required"]:
                    self.fault(f"{what} without the header {field}")
            else:
                self.seen.add((method, name, status, field))
        content = answer.get("content", {})
        if not content:
            if body:
                self.fault(f"{what} with a body")
            return
        kind = fields.get("content-type", "").split(";")[0].strip().lower()
        entry = kind if kind in content else "*/*"
        if entry not in content:
            self.fault(f"{what} as {kind!r}, which is not in the document")
            return
        if is_head:
            return
        self.seen.add((method, name, status, entry))
        self.judge_body(what, self.below(pointer, "content", entry, "schema"), kind, body)

    def judge_request(self, method, target, kind, body):
        """Holds a request that was taken against the document."""
        path, _, query = target.partition("?")
        name = self.operation(method, path)
        if name is None:
            return
        operation = self.below("#", "paths", name, method.lower())
        known = {one["name"] for one in self.at(operation).get("parameters", [])}
        for field in {part.split("=")[0] for part in query.split("&") if part} - known:
            self.fault(f"{method} {name} takes ?{field}, which is not in the document")
        content = self.at(operation).get("requestBody", {}).get("content", {})
        if body and not content:
            self.fault(f"{method} {name} takes a body")
        elif kind in content and kind.endswith("json"):
            schema = self.below(operation, "requestBody", "content", kind, "schema")
            for error in self.errors(schema, json.loads(body)):
                self.fault(f"{method} {name} takes {error.json_path}: {error.message[:300]}")

    def judge_body(self, what, pointer, kind, body):
        try:
            text = body.decode()
            value = json.loads(text) if kind.endswith("json") else text
        except ValueError as error:
            self.fault(f"{what}: the body is no {kind}: {error}")
            return
        errors = list(self.errors(pointer, value))
        for error in errors[:5]:
            self.fault(f"{what}: {error.json_path}: {error.message[:300]}")
        if not errors:
            self.follow(pointer, value)
        if kind == "text/event-stream":
            for line in text.split("\n"):
                if line.startswith("data: ey"):
                    self.judge_claims("#/components/schemas/Notification", line[6:])

    def judge_claims(self, pointer, token):
        said = claims(token)
        for error in self.errors(pointer, said):
            self.fault(f"claims{error.json_path[1:]}: {error.message}")
        self.follow(pointer, said)

    def judge_stray(self, what, method, path, status, fields, body):
        """What is no route is answered with a problem that says so, or by who asks; OPTIONS with
        the methods of its path."""
        takes = [n for (_, n), (pattern, _) in self.operations.items() if pattern.fullmatch(path)]
        if method == "OPTIONS" and status == 204 and (takes or path in ("*", "/")):
            if body or not fields.get("allow"):
                self.fault(f"{what} without Allow, or with a body")
            return
        allowed = {400, 401, 403, 405 if takes else 404, 431} | ({413} if takes else set())
        if status not in allowed:
            self.fault(f"{what}, and is not in the document")
            return
        if fields.get("content-type") != PROBLEM:
            self.fault(f"{what} without a problem")
        elif status == 405 and not fields.get("allow"):
            self.fault(f"{what} without Allow")

    # MARK: What was not seen

    def unseen(self):
        """Takes as a fault what is documented and did not come."""
        declared = (set(), set())
        for (method, name), (_, operation) in sorted(self.operations.items()):
            for status in operation["responses"]:
                what = f"{method} {name} {status}"
                pointer = self.resolved(self.below(
                    "#", "paths", name, method.lower(), "responses", status))
                answer = self.at(pointer)
                if int(status) in UNSEEN_STATUSES and (method, name, int(status)) not in self.seen:
                    continue
                for entry in answer.get("content", {}):
                    self.declared(self.below(pointer, "content", entry, "schema"), declared)
                if (method, name, int(status)) not in self.seen:
                    self.fault(f"{what} did not come")
                    continue
                if int(status) >= 400:
                    continue
                for part in list(answer.get("content", {})) + [
                        field.lower() for field in answer.get("headers", {})]:
                    if (method, name, int(status), part) not in self.seen:
                        self.fault(f"{what} {part} did not come")
        for field in sorted(declared[1] - self.fields):
            short = re.sub("/properties/([^/]+)", r".\1", field).replace("#/components/", "")
            if not any(re.fullmatch(excused, short) for excused in UNSEEN_FIELDS):
                self.fault(f"the field {short} did not come")
