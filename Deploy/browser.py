"""A browser for the checks that are written in Python."""
import json
import os
import select
import shutil
import subprocess
import time

from gateway import PATIENCE, ROOT, end


class Browser:
    """Chromium, driven over a pair of pipes (Chrome DevTools Protocol)."""

    def __init__(self, directory):
        program = next(
            filter(None, map(shutil.which, ["chromium-headless-shell", "chromium"])), None)
        if not program:
            subprocess.run(
                [ROOT / "Deploy/packages", "chromium-headless-shell", "fonts-liberation"],
                check=True)
            program = shutil.which("chromium-headless-shell")
        to_read, self.output = os.pipe()
        self.input, to_write = os.pipe()

        def arrange():
            # The browser reads commands at 3 and writes answers at 4. Either may lie there already.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [
            program, "--remote-debugging-pipe", "--headless", "--no-sandbox",
            "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update",
            # The certificate is the check's own.
            "--ignore-certificate-errors",
            f"--user-data-dir={directory}/profile", "about:blank",
        ]
        self.process = subprocess.Popen(
            command, preexec_fn=arrange, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.hear = 0, b"", []

    def messages(self, deadline):
        while True:
            end = self.rest.find(b"\0")
            if end >= 0:
                message, self.rest = self.rest[:end], self.rest[end + 1 :]
                yield json.loads(message)
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                return
            more = os.read(self.input, 1 << 20)
            if not more:
                raise SystemExit("the browser has ended")
            self.rest += more

    def send(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data) :]
        return self.number

    def call(self, method, session=None, **parameters):
        number = self.send(method, session, **parameters)
        for message in self.messages(time.monotonic() + PATIENCE):
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            for hear in self.hear:
                hear(message)
        raise RuntimeError(f"{method} was not answered")

    def wait(self, seconds):
        for message in self.messages(time.monotonic() + seconds):
            for hear in self.hear:
                hear(message)

    def stop(self):
        end(self.process)


class Tab:
    """One page. Those of one context share connections, as the tabs of one person do."""

    def __init__(self, browser, context=None):
        self.browser = browser
        self.context = context or browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call(
            "Target.createTarget", url="about:blank", browserContextId=self.context
        )["targetId"]
        self.session = browser.call(
            "Target.attachToTarget", targetId=self.target, flatten=True
        )["sessionId"]
        browser.hear.append(self.hear)

    def hear(self, message):
        if message.get("sessionId") == self.session:
            self.heard(message.get("method"), message.get("params", {}))

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def run(self, script):
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")
