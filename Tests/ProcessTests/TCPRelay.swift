import Foundation
import GatewayTestSupport
import WidgetModel

/// A relay of TCP connections to another port, which can be turned into a black hole.
final class TCPRelay: Sendable {
    /// Prints its port; at SIGUSR1 it forwards nothing more and keeps every connection open.
    private static let script = """
        import signal, socket, sys, threading
        listener = socket.create_server(("127.0.0.1", 0))
        forwarding = threading.Event()
        forwarding.set()
        kept = []
        # Waited for, as a handler runs late where another thread gets the signal.
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        def forward(source, target):
            try:
                while data := source.recv(65536):
                    if not forwarding.is_set(): return
                    target.sendall(data)
                if forwarding.is_set(): target.shutdown(socket.SHUT_WR)
            except OSError: pass
        def serve():
            while True:
                client, _ = listener.accept()
                kept.append(client)
                if not forwarding.is_set(): continue
                server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
                kept.append(server)
                for pair in (client, server), (server, client):
                    threading.Thread(target=forward, args=pair, daemon=True).start()
        print('{"port": %d}' % listener.getsockname()[1], flush=True)
        threading.Thread(target=serve, daemon=True).start()
        signal.sigwait([signal.SIGUSR1])
        forwarding.clear()
        print('{"forwarding": false}', flush=True)
        while True: signal.pause()
        """

    private let program: TestProgram
    /// Its port on 127.0.0.1.
    let port: Int64

    /// Starts a relay to a port of 127.0.0.1.
    ///
    /// - Throws: ``TestFailure``.
    init(to target: Int) throws {
        program = try TestProgram("/usr/bin/python3", ["-c", Self.script, String(target)])
        guard let port = try program.json(line: 0)?["port"]?.integerValue else {
            throw TestFailure("the relay does not start")
        }
        self.port = port
    }

    /// Forwards nothing more, neither of open connections nor of new ones, and says nothing of it to
    /// either side.
    func becomeBlackHole() throws {
        program.signal(SIGUSR1)
        guard try program.json(line: 1)?["forwarding"] == false else {
            throw TestFailure("the relay does not stop")
        }
    }
}
