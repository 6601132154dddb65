"""Starts a cluster on this machine and shows that a client survives what happens to it.

Installs the Debian packages that are missing, builds the release, and starts a PostgreSQL primary
with a standby that every commit waits for, three gateways and a balancer (haproxy) in front. A
client follows 50 characters while changes are posted; then its gateway is killed, then the one that
leads, and after that the primary, whose place the standby takes. The cluster keeps running until
Ctrl-C; its files are in .build-run/cluster.
"""
import argparse
import csv
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from gateway import PATIENCE, ROOT, Gateway, claims, eventually, free_port

GATEWAY = str(ROOT / ".build-release/release/timeline-gateway")
APP = "com.mygame"
CHARACTERS, CHANGES = 50, 400
CATALOG = f"""
app: {APP}
entities: {{ Character: {{ properties: [health] }} }}
intents: {{ One: {{ parameters: [{{ name: character, type: Character }}] }} }}
widgets:
  - kind: detail
    configuration: appIntent
    intent: One
    families: [systemSmall]
    collapse: 0s
    dependsOn: [{{ entity: Character, match: {{ id: $character }} }}]
"""


def say(text):
    print(f"\n== {text}", flush=True)


def run(*command, user=None, **options):
    return subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, user=user,
        **({"cwd": "/"} | options)).stdout


def wait(what, condition):
    """Returns the first result that is not false."""
    if result := eventually(condition):
        return result
    raise SystemExit(f"Deploy/cluster: not within {PATIENCE:g} s: {what}")


class Postgres:
    """A PostgreSQL server in a directory of its own, reached by a Unix socket."""
    programs = max(glob.glob("/usr/lib/postgresql/*/bin"), default="")
    # It refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None

    def __init__(self, directory, name):
        self.name, self.directory = name, f"{directory}/{name}"
        self.process = None
        pathlib.Path(self.directory).mkdir()
        if self.user:
            shutil.chown(self.directory, self.user)

    @property
    def options(self):
        return f"host={self.directory} user=postgres dbname=postgres"

    def create(self):
        run(f"{self.programs}/initdb", "-D", f"{self.directory}/data", "-U", "postgres", "-A",
            "trust", "-E", "UTF8", user=self.user)

    def copy(self, primary):
        """Becomes a standby of another server."""
        shutil.rmtree(f"{self.directory}/data", ignore_errors=True)
        run(f"{self.programs}/pg_basebackup", "-h", primary.directory, "-U", "postgres", "-D",
            f"{self.directory}/data", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d",
            f"application_name={self.name}", user=self.user)

    def start(self):
        log = open(f"{self.directory}/log", "ab")
        self.process = subprocess.Popen(
            [f"{self.programs}/postgres", "-D", f"{self.directory}/data", "-k", self.directory,
             "-c", "listen_addresses=", "-c", "shared_buffers=16MB"],
            stdout=log, stderr=log, user=self.user, cwd="/", start_new_session=True)
        wait(f"{self.name} accepts connections", lambda: subprocess.run(
            [f"{self.programs}/pg_isready", "-q", "-h", self.directory], check=False
        ).returncode == 0)

    def sql(self, *statements):
        commands = [part for text in statements for part in ("-c", text)]
        return run("psql", "-XAtq", "-h", self.directory, "-U", "postgres", *commands)

    def wait_for_standby(self, name):
        """Has every commit wait for a standby."""
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({name})'",
                 "SELECT pg_reload_conf()")
        wait("the standby takes part in the quorum", lambda: "quorum" in self.sql(
            "SELECT sync_state FROM pg_stat_replication"))

    def promote(self):
        self.sql("SELECT pg_promote()")

    def kill(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Node:
    """A gateway of the cluster."""

    def __init__(self, number, cluster):
        self.number, self.cluster = number, cluster
        self.port, self.probes, self.admin = free_port(), free_port(), free_port()
        # The address for the other nodes, which names this one.
        self.name = f"127.0.0.1:{free_port()}"
        self.data = f"{cluster.directory}/gateway{number}"
        self.config = f"{cluster.directory}/gateway{number}.yaml"
        hosts = ",".join(server.directory for server in cluster.servers)
        pathlib.Path(self.config).write_text(f"""
data: {self.data}
publicURL: {cluster.url}
listen: 127.0.0.1:{self.port}
admin: 127.0.0.1:{self.admin}
probes: 127.0.0.1:{self.probes}
localIssuer: true
tls: {{ certificate: {cluster.certificates}/server.pem, key: {cluster.certificates}/server.key }}
cluster:
  url: postgres://gateway{number}@/postgres?host={hosts}
  key: {cluster.key}
  durability: quorum
  node: {self.name}
""")
        self.process = None

    def start(self):
        log = open(f"{self.cluster.directory}/gateway{self.number}.log", "ab")
        self.process = subprocess.Popen(
            [GATEWAY, "serve", "--config", self.config], stdout=subprocess.PIPE, stderr=log,
            text=True)
        if not self.process.stdout.readline().startswith("ready "):
            raise SystemExit(pathlib.Path(log.name).read_text())

    def streams(self):
        """Returns the number of open streams."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=PATIENCE) as page:
            for line in page.read().decode().splitlines():
                if line.startswith("timeline_gateway_streams "):
                    return int(float(line.split()[1]))
        return 0

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class Cluster(Gateway):
    """Two PostgreSQL servers, three gateways and a balancer."""

    timeout = 10

    def __init__(self, directory):
        super().__init__(GATEWAY, directory)
        self.servers = [Postgres(directory, name) for name in ("one", "two")]
        self.key = f"{directory}/cluster.key"
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as key:
            key.write(os.urandom(32))
        self.nodes = [Node(number, self) for number in (1, 2, 3)]
        self.data, self.balancer = self.nodes[0].data, None

    def start(self):
        primary, standby = self.servers
        primary.create()
        primary.start()
        standby.copy(primary)
        standby.start()
        primary.wait_for_standby(standby.name)
        logins = [f"gateway{node.number}" for node in self.nodes]
        primary.sql(*(f"CREATE ROLE {login} LOGIN" for login in logins))
        print(run(GATEWAY, "cluster", "prepare", "--database", self.database(primary), "--key",
                  self.key, *(part for login in logins for part in ("--login", login))), end="")
        for node in self.nodes:
            node.start()
            # The first one; its keys are those of all.
            wait("a gateway leads", self.leader)
            print(f"gateway {node.number} is ready on port {node.port}", flush=True)
        self.start_balancer()

    def database(self, server):
        return f"postgres://postgres@/postgres?host={server.directory}"

    def leader(self):
        """Returns the node that leads; `None` while none does."""
        status = json.loads(run(
            GATEWAY, "cluster", "status", "--database", self.database(self.servers[0]), "--json"))
        names = [node["name"] for node in status["nodes"] if node["leads"]]
        return next((node for node in self.nodes if node.name in names), None)

    def start_balancer(self):
        config = f"{self.directory}/haproxy.cfg"
        servers = "\n".join(
            f"  server gateway{node.number} 127.0.0.1:{node.port} check port {node.probes}"
            for node in self.nodes)
        pathlib.Path(config).write_text(f"""
global
  stats socket {self.directory}/haproxy.sock
defaults
  mode tcp
  timeout connect 2s
  timeout client 2h
  timeout server 2h
  timeout check 2s
listen gateways
  bind 127.0.0.1:{self.port}
  balance leastconn
  option httpchk GET /readyz
  option redispatch
  default-server inter 500ms fall 2 rise 1
{servers}
""")
        self.balancer = subprocess.Popen(
            ["haproxy", "-q", "-db", "-f", config],
            stderr=open(f"{self.directory}/haproxy.log", "ab"))
        wait("the balancer passes requests on", lambda: self.status("GET", "/livez") is not None)

    def outs(self):
        """Returns how often the balancer has taken each gateway out."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{self.directory}/haproxy.sock")
            connection.sendall(b"show stat\n")
            rows = csv.DictReader(connection.makefile())
            return {row["svname"]: int(row["chkdown"]) for row in rows if row["chkdown"]}

    def status(self, *request):
        """Returns the status of an answer; `None` without one."""
        try:
            self.ask(*request)
            return 200
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, ValueError):
            return None

    def stop(self):
        for process in [self.balancer] + [node.process for node in self.nodes]:
            if process:
                process.terminate()
        for node in self.nodes:
            if node.process:
                try:
                    node.process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    node.process.kill()
        for server in self.servers:
            server.kill()


class Backend(threading.Thread):
    """Posts changes of the characters in turn, and repeats each until it is accepted."""

    def __init__(self, cluster, token):
        super().__init__(daemon=True)
        self.cluster, self.token = cluster, token
        # When the last change of each character was posted that was accepted.
        self.posted = {}
        self.accepted = []
        self.worst, self.is_stopped = 0.0, False

    def run(self):
        for number in range(CHANGES):
            character = f"c{number % CHARACTERS}"
            body = {
                "specversion": "1.0", "type": "changed", "source": "demonstration",
                "id": str(number), "data": {"entity": "Character", "id": character}}
            began = time.monotonic()
            while not self.is_stopped:
                try:
                    self.cluster.ask(
                        "POST", f"/v1/apps/{APP}/changes", self.token, body,
                        "application/cloudevents+json")
                    break
                except (OSError, ValueError):
                    time.sleep(0.05)
            if self.is_stopped:
                return
            self.posted[character] = began
            self.accepted.append(time.monotonic())
            self.worst = max(self.worst, time.monotonic() - began)
            time.sleep(0.05)


class Phone(threading.Thread):
    """A client that follows every character, and reconnects with its cursor."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.token = cluster, cluster.token(APP, "client", "phone")
        widgets = [{"kind": "detail", "family": "systemSmall",
                    "parameters": {"character": f"c{number}"}} for number in range(CHARACTERS)]
        registered = cluster.ask(
            "PUT", f"/v1/apps/{APP}/clients/phone", self.token,
            {"platform": "iOS", "widgets": widgets})
        self.cursor, self.told = registered["cursor"], {}
        self.connected_at, self.connections, self.everything = 0.0, 0, 0

    def run(self):
        while True:
            try:
                self.follow()
            except (OSError, ValueError):
                pass
            time.sleep(0.1)

    def follow(self):
        request = urllib.request.Request(
            f"{self.cluster.url}/v1/apps/{APP}/clients/phone/reloads")
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Accept", "text/event-stream")
        request.add_header("Last-Event-ID", self.cursor)
        with urllib.request.urlopen(request, context=self.cluster.client_tls, timeout=PATIENCE) as stream:
            self.connected_at = time.monotonic()
            self.connections += 1
            cursor = None
            for line in stream:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "id":
                    cursor = value
                elif field == "data":
                    self.note(value)
                elif not field and cursor:
                    self.cursor = cursor

    def note(self, notification):
        content = claims(notification)
        self.everything += content.get("all", False)
        for one in content.get("reload", []):
            if character := one.get("parameters", {}).get("character"):
                self.told[character] = time.monotonic()


def accepted_after(poster, killed):
    """Returns when a change was accepted for the first time after a kill."""
    return wait("a change is accepted again", lambda: next(
        (time for time in list(poster.accepted) if time > killed + 0.2), None))


def demonstrate(cluster):
    say("A catalog, a client with 50 widgets, and a backend")
    backend = cluster.token(APP, "catalog:write changes:write")
    wait("the catalog is accepted", lambda: cluster.status(
        "PUT", f"/v1/apps/{APP}/catalog", backend, CATALOG.encode(), "application/yaml") == 200)
    phone, poster = Phone(cluster), Backend(cluster, backend)
    phone.start()
    wait("the client's stream is open", lambda: phone.connections)
    poster.start()
    wait("ten changes are told", lambda: len(phone.told) >= 10)

    say("kill -9 of the client's gateway")
    node = next(node for node in cluster.nodes if node.streams())
    killed = time.monotonic()
    node.kill()
    wait("the client is connected again", lambda: phone.connected_at > killed)
    print(f"gateway {node.number} is gone; the client is at another one after "
          f"{phone.connected_at - killed:.1f} s")
    wait("its stream goes on", lambda: max(phone.told.values()) > phone.connected_at)
    node.start()
    print(f"gateway {node.number} is back")

    say("kill -9 of the gateway that leads")
    node = wait("a gateway leads", cluster.leader)
    connections, killed = phone.connections, time.monotonic()
    was_here, outs = node.streams() > 0, cluster.outs()
    node.kill()
    leader = wait("another gateway leads", lambda: next(
        (other for other in [cluster.leader()] if other not in (None, node)), None))
    after = accepted_after(poster, killed)
    print(f"gateway {leader.number} leads in place of {node.number}; changes are accepted again "
          f"after {after - killed:.1f} s")
    name = f"gateway{node.number}"
    if {**cluster.outs(), name: 0} != {**outs, name: 0}:
        raise SystemExit("Deploy/cluster: the balancer took gateways out that only had no leader")
    if was_here:
        wait("the client is connected again", lambda: phone.connections > connections)
    node.start()
    print(f"gateway {node.number} is back")

    say("kill -9 of the primary; the standby takes its place")
    primary, standby = cluster.servers
    connections, killed = phone.connections, time.monotonic()
    outs = cluster.outs()
    primary.kill()
    # As a failover manager, which makes sure first.
    time.sleep(5)
    standby.promote()
    # The promise of a 202 needs a standby again.
    standby.sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (one)'",
                "SELECT pg_reload_conf()")
    primary.copy(standby)
    primary.start()
    print(f"the old primary is a standby after {time.monotonic() - killed:.1f} s")
    after = accepted_after(poster, killed)
    print(f"changes are accepted again after {after - killed:.1f} s")
    if cluster.outs() != outs:
        raise SystemExit("Deploy/cluster: the balancer took gateways out while the primary changed")

    say("The rest of the changes")
    poster.join(120)

    def missing():
        return [character for character, posted in list(poster.posted.items())
                if phone.told.get(character, 0) < posted]

    wait("every change is told", lambda: not missing())
    lost = missing()
    print(f"{len(poster.accepted)} changes accepted, {len(lost)} not told; the client was told "
          f"`all` {phone.everything} times and reconnected {phone.connections - 1} times, "
          f"{phone.connections - connections} of them because of the database; the longest wait of "
          f"the backend was {poster.worst:.1f} s")
    if poster.is_alive() or lost or phone.everything or phone.connections != connections:
        raise SystemExit("Deploy/cluster: something did not arrive, or was told again")


def main():
    parser = argparse.ArgumentParser(
        prog="Deploy/cluster", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exit", action="store_true", help=(
        "stop after the demonstration; fails when anything did not arrive"))
    parser.add_argument(
        "--built", action="store_true", help="with the release as it was built before")
    options = parser.parse_args()
    if not options.built:
        for command in "packages python3 openssl haproxy", "postgresql", "run --build":
            status = subprocess.run(f"Deploy/{command}", shell=True, cwd=ROOT).returncode
            if status:
                sys.exit(status)
    # The path of a Unix socket has at most 107 bytes, and the server's user has to reach it.
    directory = tempfile.mkdtemp(prefix="timeline-")
    os.chmod(directory, 0o755)
    cluster = Cluster(directory)
    link = ROOT / ".build-run/cluster"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(directory)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        say("A primary with a standby, three gateways, a balancer")
        cluster.start()
        demonstrate(cluster)
        print("\nEverything arrived.", flush=True)
        if not options.exit:
            print(f"""
The cluster runs until Ctrl-C; the balancer is {cluster.url}. To see it:
  {GATEWAY} cluster status --database '{cluster.database(cluster.servers[1])}'
""", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
        link.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
