import Glibc
import NighCore
import NighLoop

/// The socket at which `nigh guests` asks a running program for its guests. Only this user can reach it.
///
/// A call is one line, `list`, `invite` or `revoke PEERID`; the answer is lines of fields with tabs between them, and
/// then the end. All state is confined to the session's loop; hence `@unchecked Sendable`.
final class GuestDesk: @unchecked Sendable {
    private weak var session: Session?
    private let path: String
    private var listener: SocketListener?
    private var calls: [ObjectIdentifier: Call] = [:]
    /// The most calls at a time.
    private static let mostCalls = 8

    /// Opens the desk of a session. Nil if there can be none, for example because the folder cannot be written.
    init?(of session: Session) {
        guard let loop = session.loop as? UVEventLoop, let path = GuestDeskFolder.newPath(),
            var address = GuestDeskFolder.address(of: path)
        else { return nil }
        self.session = session
        self.path = path
        unlink(path)
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let listener = withUnsafeBytes(of: &address) { bytes in
            try? SocketListener(
                binding: descriptor, to: bytes, scheme: "guests", on: loop,
                opened: { [weak self] in self?.opened($0, on: loop) }, failed: { _ in })
        }
        guard let listener else { return nil }
        self.listener = listener
    }

    /// Ends all calls, and removes the socket.
    func close() {
        listener?.close()
        listener = nil
        for call in calls.values { call.pipe.finish() }
        calls = [:]
        unlink(path)
    }

    private func opened(_ pipe: SocketPipe, on loop: UVEventLoop) {
        guard calls.count < Self.mostCalls else { return pipe.finish() }
        let key = ObjectIdentifier(pipe)
        let call = Call(pipe, on: loop) { [weak self] request, call in self?.answer(request, call) }
        calls[key] = call
        pipe.didFinish = { [weak self] _ in self?.calls[key] = nil }
        pipe.start(handler: call)
    }

    private func answer(_ request: String, _ call: Call) {
        guard let session else { return call.end([]) }
        let words = request.split(separator: " ")
        switch (words.first, words.count) {
        case ("list", 1):
            Task {
                let guests = await session.guests
                let names = Dictionary(
                    session.peers.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
                let lines = guests.map { guest in
                    [
                        "guest", "\(guest.id)", names[guest.id] ?? "", guest.address,
                        "\(guest.age.components.seconds)", guest.isHere ? "here" : "away",
                    ]
                }
                call.end([["program", session.service, session.name]] + lines)
            }
        case ("invite", 1):
            Task {
                let invitation = try? await session.inviteGuest()
                call.end(invitation.map { [["url", $0.url]] + $0.alternatives.map { ["url", $0] } } ?? [])
            }
        case ("revoke", 2):
            guard let id = PeerID(String(words[1])) else { return call.end([]) }
            session.revokeGuest(id)
            call.end([["revoked", "\(id)"]])
        default: call.end([])
        }
    }

    /// One call at the desk.
    ///
    /// `@unchecked Sendable`: confined to the loop, on which `end` continues.
    private final class Call: PipeHandler, @unchecked Sendable {
        let pipe: SocketPipe
        private var received: [UInt8] = []
        private var answer: ((String, Call) -> Void)?
        private let loop: UVEventLoop

        private static let longestRequest = 128

        init(_ pipe: SocketPipe, on loop: UVEventLoop, _ answer: @escaping (String, Call) -> Void) {
            self.pipe = pipe
            self.loop = loop
            self.answer = answer
        }

        func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
            received += bytes.bytes
            guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else {
                if received.count > Self.longestRequest { self.pipe.finish() }
                return
            }
            let answer = answer.take()
            answer?(String(decoding: received[..<end], as: UTF8.self), self)
        }

        /// Sends the answer, and ends the call. Callable from any thread.
        func end(_ lines: [[String]]) {
            let text = lines.map { $0.joined(separator: "\t") + "\n" }.joined()
            loop.execute { [self] in
                var queue = ByteQueue()
                queue.append(ByteSlice(Array(text.utf8)))
                pipe.write(&queue)
                pipe.close(.afterWriting)
            }
        }

        func pipeBecameWritable(_ pipe: any Pipe) {}
        func pipeEnded(_ pipe: any Pipe) { pipe.close(.now) }
        func pipeClosed(_ pipe: any Pipe, error: NighError?) {}
        func pipeDrained(_ pipe: any Pipe) {}
    }
}
