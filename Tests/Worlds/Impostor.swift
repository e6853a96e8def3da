import NighCore
import NighTestKit
import NighMemory

/// A fake peer. It listens where another peer is expected, and proves no identity.
///
/// `@unchecked Sendable`: everything happens on the one virtual loop.
package final class Impostor: TransportEventHandler, PipeHandler, @unchecked Sendable {
    package enum Behavior: CaseIterable, Sendable {
        case silent
        /// Closes each pipe at once.
        case closing
        /// Sends bytes that are no preface.
        case sendingGarbage
        /// Sends back what it receives.
        case echoing
        /// Sends the preface, and nothing more.
        case stalling
    }

    /// The preface of version 1, for both encrypted and plaintext links.
    private static let preface: [UInt8] = [0x4E, 0x49, 0x47, 0x48, 1, 3, 0, 0]

    package let address: TransportAddress
    private let behavior: Behavior
    private let transport: MemoryTransport
    private var pipes: [any Pipe] = []
    /// The number of pipes that came in.
    package var opened: Int { pipes.count }
    /// The number of pipes that have ended, closed by either side.
    package private(set) var closed = 0

    /// Listens at `name` and announces `advertisement`, which may carry another peer's ID. To listen without being
    /// found, announce another service.
    package init(
        _ behavior: Behavior, at name: String, announcing advertisement: Advertisement, hub: MemoryHub,
        loop: any EventLoop
    ) {
        self.behavior = behavior
        address = TransportAddress(scheme: "memory", value: name)
        transport = MemoryTransport(hub: hub, address: name)
        transport.start(on: loop, events: self)
        transport.advertise(advertisement)
    }

    /// Leaves the network and ends all its pipes.
    package func shutdown() {
        transport.shutdown()
        pipes = []
    }

    package func handle(_ event: TransportEvent, by transport: any Transport) {
        guard case .pipeOpened(let pipe, _) = event else { return }
        pipes.append(pipe)
        pipe.start(handler: self)
        switch behavior {
        case .silent, .echoing: break
        case .closing:
            closed += 1
            pipe.close(.now)
        case .sendingGarbage: send("220 welcome to something else\r\n".utf8, on: pipe)
        case .stalling: send(Self.preface, on: pipe)
        }
    }

    private func send(_ bytes: some Sequence<UInt8>, on pipe: any Pipe) {
        var queue = ByteQueue()
        queue.append(ByteSlice(Array(bytes)))
        pipe.write(&queue)
    }

    package func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        if behavior == .echoing { send(bytes.bytes, on: pipe) }
    }

    package func pipeEnded(_ pipe: any Pipe) { end(pipe) }
    package func pipeClosed(_ pipe: any Pipe, error: NighError?) { end(pipe) }

    private func end(_ pipe: any Pipe) {
        closed += 1
        pipe.close(.now)
    }

    package func pipeBecameWritable(_ pipe: any Pipe) {}
    package func pipeDrained(_ pipe: any Pipe) {}
}
