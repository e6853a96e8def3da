import Glibc
import NighCore
import NighSystem
import NighTestKit

@testable import NighTCP

/// Decides what an attacker in the middle does with one connection.
protocol Middleman: AnyObject {
    /// Returns the bytes to send as soon as both connections are open.
    func opening() -> Relay.Output

    /// Returns the bytes to send when bytes have come from one side.
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

/// Passes bytes on. May flip bits of one byte of one side.
final class Changer: Middleman {
    private let change: (bits: UInt8, position: Int, side: LinkSide)?
    private var offset = 0

    init() { change = nil }

    init(_ bits: UInt8, at position: Int, from side: LinkSide) { change = (bits, position, side) }

    func received(_ bytes: [UInt8], from side: LinkSide) -> Relay.Output {
        var bytes = bytes
        if let change, change.side == side {
            let index = change.position - offset
            if bytes.indices.contains(index) { bytes[index] ^= change.bits }
            offset += bytes.count
        }
        return .on(bytes, from: side)
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
