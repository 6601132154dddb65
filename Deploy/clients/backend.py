"""timeline_gateway.py for Deploy/check-backend: orders on standard input, a line each, answered so.

usage: backend.py DIRECTORY-OF-THE-FILE CA
"""
import base64
import json
import pickle
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import timeline_gateway as file  # noqa: E402

ca, verifiers, monotonic = sys.argv[2], {}, time.monotonic


def act(do, order):
    if do == "mint":
        signer = file.Signer(order["key"].encode(), order["kid"], order["iss"], order["aud"])
        return signer.token(order["app"], order["sub"], order["scope"], order["attributes"],
            order["ttl"])
    if do == "post":
        gateway = file.Gateway(order["url"], order["app"], lambda: order["token"], ca)
        return gateway.post(order["events"], order["patience"])
    if do == "event":
        return file.event("/game", order["change"])
    if do == "webhook":
        id, document = file.verify_webhook(
            order["keys"], order["app"], order["fields"], base64.b64decode(order["body"]),
            order["now"])
        return {"id": id, "document": document}
    name = json.dumps(order["verifier"])
    if name not in verifiers:
        verifiers[name] = file.NotificationVerifier(*order["verifier"], cafile=ca)
    time.monotonic = lambda: order["now"]  # Of the keys' age.
    try:
        return verifiers[name].verify(order["jws"], order["now"])
    finally:
        time.monotonic = monotonic


for line in sys.stdin:
    order = json.loads(line)
    try:
        answer = {"value": act(order.pop("do"), order)}
    except file.Rejection as error:
        error = pickle.loads(pickle.dumps(error))
        answer = {"rejected": error.field, "text": str(error)}
    except file.GatewayError as error:
        error = pickle.loads(pickle.dumps(error))
        answer = {"refused": error.status, "after": error.retry_after, "text": str(error),
            "places": [fault["place"] for fault in error.faults]}
    except Exception as error:
        answer = {"failed": repr(error)}
    print(json.dumps(answer), flush=True)
