import Glibc
import NighCore
import NighTestKit

@testable import NighTCP

/// Decides what an attacker in the middle does with one connection.
protocol Middleman: AnyObject {
    /// What it sends by itself as soon as both connections are open.
    func opening() -> Relay.Output

    /// What it sends when it receives bytes from one side.
    func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output
}

extension Middleman {
    func opening() -> Relay.Output { Relay.Output() }
}

/// Sits between a client, which dials its port, and a server that listens at another port. Uses threads of its own.
///
/// `@unchecked Sendable`: the monitor guards everything that changes.
final class Relay: @unchecked Sendable {
    /// The bytes to send to either side.
    struct Output {
        var toDialling: [UInt8] = []
        var toAccepting: [UInt8] = []

        /// Passes on `bytes` from `side` to the other side.
        static func on(_ bytes: [UInt8], from side: LinkSide) -> Output {
            side == .dialling ? Output(toAccepting: bytes) : Output(toDialling: bytes)
        }
    }

    var port: UInt16 { listener.port }

    private let listener = PlainSocket()
    private let target: UInt16
    private let monitor = Monitor()
    private var make: () -> any Middleman
    private var threads: [LoopThread] = []
    private var open: [(dialling: PlainSocket, accepting: PlainSocket)] = []
    private var isOver = false

    /// Relays to `target` on loopback, with a new middleman for each connection.
    init(to target: UInt16, _ make: @escaping () -> any Middleman) throws {
        self.target = target
        self.make = make
        listener.listen()
        let thread = LoopThread()
        let listener = listener
        threads = [thread]
        try thread.start { [weak self] in
            while true {
                let descriptor = accept(listener.descriptor, nil, nil)
                guard descriptor >= 0 else { return }
                guard let self else { return _ = close(descriptor) }
                self.begin(PlainSocket(owning: descriptor))
            }
        }
    }

    deinit { end() }

    /// Uses other middlemen for all connections from now on.
    func become(_ make: @escaping () -> any Middleman) { monitor.change { self.make = make } }

    /// Closes all connections. New ones are still accepted.
    func cut() { for pair in monitor.read({ open }) { shutDown(pair.dialling, pair.accepting) } }

    /// Ends everything, and waits until it has ended.
    func end() {
        monitor.change { isOver = true }
        shutdown(listener.descriptor, Int32(SHUT_RDWR))
        cut()
        for thread in monitor.read({ threads }) where !thread.isCurrent { thread.join() }
        monitor.change { threads = [] }
    }

    private func shutDown(_ sockets: PlainSocket...) {
        for socket in sockets { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }
    }

    private func begin(_ dialling: PlainSocket) {
        monitor.change {
            guard !isOver else { return }
            let accepting = PlainSocket(connectedTo: target)
            let middleman = make()
            let thread = LoopThread()
            open.append((dialling, accepting))
            threads.append(thread)
            thread.startOrStopProgram { Self.relay(dialling, accepting, middleman) }
        }
    }

    private static func relay(_ dialling: PlainSocket, _ accepting: PlainSocket, _ middleman: any Middleman) {
        func say(_ words: Output) {
            dialling.write(words.toDialling)
            accepting.write(words.toAccepting)
        }
        say(middleman.opening())
        var ends = [dialling, accepting].map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while ends.contains(where: { $0.fd >= 0 }) {
            poll(&ends, 2, -1)
            for index in ends.indices where ends[index].fd >= 0 && ends[index].revents != 0 {
                let count = recv(ends[index].fd, &buffer, buffer.count, 0)
                if count > 0 {
                    let side: LinkSide = index == 0 ? .dialling : .accepting
                    say(middleman.received(Array(buffer.prefix(count)), from: side))
                } else {
                    shutdown(index == 0 ? accepting.descriptor : dialling.descriptor, Int32(SHUT_WR))
                    ends[index].fd = -1
                }
            }
        }
    }
}

/// Passes bytes on, changed by a function of their position in the stream of their side.
final class Changer: Middleman {
    private let change: (LinkSide, inout [UInt8], _ offset: Int) -> Void
    private var offsets = (dialling: 0, accepting: 0)

    init(_ change: @escaping (LinkSide, inout [UInt8], _ offset: Int) -> Void = { _, _, _ in }) {
        self.change = change
    }

    /// Flips these bits of one byte.
    convenience init(_ bits: UInt8, at position: Int, from changed: LinkSide) {
        self.init { side, bytes, offset in
            guard side == changed, bytes.indices.contains(position - offset) else { return }
            bytes[position - offset] ^= bits
        }
    }

    func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output {
        var changed = bytes
        change(side, &changed, side == .dialling ? offsets.dialling : offsets.accepting)
        if side == .dialling { offsets.dialling += bytes.count } else { offsets.accepting += bytes.count }
        return .on(changed, from: side)
    }
}

/// Sends the preface for a client that does not know it, and hides the session's preface from the client.
final class PrefaceTeller: Middleman {
    static let preface = Array("NIGH".utf8) + [1, 2, 0, 0]
    private var unread = 8

    func opening() -> Relay.Output { Relay.Output(toAccepting: Self.preface) }

    func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output {
        guard side == .accepting else { return .on(bytes, from: side) }
        let skipped = min(unread, bytes.count)
        unread -= skipped
        return .on(Array(bytes.dropFirst(skipped)), from: side)
    }
}

/// Speaks TLS with each side under its own key and passes on what they send, so that each may take it for the other.
///
/// `@unchecked Sendable`: used by one thread of the relay; tests read what it learned when that is over.
final class Impersonator: Middleman, @unchecked Sendable {
    private final class End {
        let channel: TLSChannel
        var prefaceLeft = 8
        var waiting = ByteQueue()
        var hasSaidHello = false
        var wire = ByteQueue()

        init(_ channel: TLSChannel) { self.channel = channel }
    }

    private let identity: Identity
    private let rewrites: Bool
    private let dialling: End
    private let accepting: End
    private let monitor = Monitor()
    private var found: [NighError] = []

    /// Waits up to 20 s; returns whether the condition became true.
    func wait(_ isTrue: (Impersonator) -> Bool) -> Bool {
        monitor.wait(within: .seconds(20)) { isTrue(self) }
    }

    /// The errors with which its channels ended.
    var failures: [NighError] { monitor.read { found } }
    /// The PeerID of the peer that dialled, if it has proven one.
    var dialler: PeerID? { monitor.read { dialling.channel.provenPeer } }

    /// With `rewrites`, puts its own PeerID into both hellos. Otherwise passes them on unchanged.
    init(_ identity: Identity, rewrites: Bool) throws {
        self.identity = identity
        self.rewrites = rewrites
        let context = try TLSContext(identity)
        dialling = End(TLSChannel(context, side: .accepting))
        accepting = End(TLSChannel(context, side: .dialling))
    }

    func opening() -> Relay.Output {
        monitor.change {
            for end in [dialling, accepting] {
                attempt { () throws(NighError) in try end.channel.begin(wire: &end.wire) }
            }
            let words = takeOutput()
            return Relay.Output(
                toDialling: PrefaceTeller.preface + words.toDialling,
                toAccepting: PrefaceTeller.preface + words.toAccepting)
        }
    }

    func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output {
        monitor.change {
            let (from, to) = side == .dialling ? (dialling, accepting) : (accepting, dialling)
            let skipped = min(from.prefaceLeft, bytes.count)
            from.prefaceLeft -= skipped
            attempt { () throws(NighError) in
                try from.channel.receive(
                    ByteSlice(bytes.dropFirst(skipped)), plain: &to.waiting, wire: &from.wire)
            }
            for end in [dialling, accepting] where end.channel.isEstablished && !end.waiting.isEmpty {
                if rewrites, !end.hasSaidHello { lie(to: end) }
                end.hasSaidHello = true
                attempt { () throws(NighError) in try end.channel.seal(&end.waiting, into: &end.wire) }
            }
            return takeOutput()
        }
    }

    /// Replaces the PeerID, which begins six bytes behind the header of the first frame.
    private func lie(to end: End) {
        var bytes = end.waiting.bytes
        bytes.replaceSubrange(10..<42, with: identity.peerID.bytes)
        end.waiting.removeAll()
        end.waiting.append(ByteSlice(bytes))
    }

    private func attempt(_ body: () throws(NighError) -> Void) {
        do throws(NighError) { try body() } catch { found.append(error) }
    }

    private func takeOutput() -> Relay.Output {
        defer {
            dialling.wire.removeAll()
            accepting.wire.removeAll()
        }
        return Relay.Output(toDialling: dialling.wire.bytes, toAccepting: accepting.wire.bytes)
    }
}
