"""A real timeline-gateway for the checks that are written in Python."""
import base64
import contextlib
import http.server
import itertools
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get(
    "TIMELINE_GATEWAY_BINARY", str(ROOT / ".build/debug/timeline-gateway"))

# When a wait has failed, in seconds, as of the tests (Patience.swift).
PATIENCE = 120 * float(os.environ.get("TIMELINE_TEST_PATIENCE", 1))

port_turns = itertools.count()


def eventually(condition, pause=0.05):
    """Returns the first result that is not false, or the last one when the wait has failed."""
    end = time.monotonic() + PATIENCE
    while not (result := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return result


def free_port():
    """Returns a TCP port of 127.0.0.1 on which nothing listens.

    It lies below Linux's range for ports of outgoing connections (ip_local_port_range, from 32768
    on), so that no connection can occupy it before a gateway opens it, or opens it again. Each process
    has a hundred numbers of its own, and takes them in turn.
    """
    while True:
        port = 10_000 + os.getpid() % 227 * 100 + next(port_turns) % 100
        with socket.socket() as held, contextlib.suppress(OSError):
            held.bind(("127.0.0.1", port))
            return port


def claims(token):
    """Those of a JWT."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def end(process):
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


class Webhook(http.server.BaseHTTPRequestHandler):
    """Takes what is pushed, but what comes to /gone or /failing."""

    def status(self):
        return {"/gone": 410, "/failing": 500}.get(self.path.partition("?")[0], 204)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(self.status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Gateway:
    """The daemon with certificates, a configuration and tokens of its own in a directory."""

    # When a request has failed, in seconds.
    timeout = PATIENCE

    def __init__(self, program, directory):
        self.program, self.directory, self.data = program, directory, f"{directory}/data"
        self.certificates = f"{directory}/certificates"
        subprocess.run(
            [ROOT / "Certs/make-development", self.certificates], check=True, capture_output=True)
        self.ca = f"{self.certificates}/ca.pem"
        self.client_tls = ssl.create_default_context(cafile=self.ca)
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"https://localhost:{self.port}"
        self.admin_url = f"http://127.0.0.1:{self.admin_port}"
        self.config, self.log = f"{directory}/gateway.yaml", f"{directory}/gateway.log"
        self.configuration = f"""
tls: {{ certificate: {self.certificates}/server.pem, key: {self.certificates}/server.key }}
localIssuer: true
publicURL: {self.url}
"""

    def serve(self, admin_host="127.0.0.1"):
        """Starts the daemon, and returns when it is ready."""
        self.configure(self.configuration)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--data", self.data, "--config", self.config,
                 "--listen", f"127.0.0.1:{self.port}", "--admin", f"{admin_host}:{self.admin_port}"],
                stdout=subprocess.PIPE, stderr=log, text=True)
        if not self.process.stdout.readline().startswith("ready "):
            raise SystemExit(pathlib.Path(self.log).read_text())

    def configure(self, text):
        pathlib.Path(self.config).write_text(text)

    def serve_https(self, handler):
        """Answers HTTPS on a free port with the gateway's certificate; returns the URL."""
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(
            f"{self.certificates}/server.pem", f"{self.certificates}/server.key")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"https://localhost:{server.server_address[1]}"

    def token(self, app, scope, sub=None, attributes=()):
        command = [self.program, "token", "--data", self.data, "--app", app]
        command += ["--scope", scope] + (["--sub", sub] if sub else [])
        for attribute in attributes:
            command += ["--attribute", attribute]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def ask(self, method, path, token=None, body=None, content_type="application/json"):
        """Returns the document that a request is answered with; a refusal is an error."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.url + path, data=data, method=method)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        if data:
            request.add_header("Content-Type", content_type)
        with urllib.request.urlopen(request, context=self.client_tls, timeout=self.timeout) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def stop(self):
        end(self.process)
