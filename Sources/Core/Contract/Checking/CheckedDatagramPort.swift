/// Wraps the datagram port of a ``CheckedPipe``. It passes everything on, and checks it against the contract.
///
/// As with ``CheckedPipe``, a report first checks that it is on the loop.
final class CheckedDatagramPort {
    private let inner: any DatagramPort
    private let owner: CheckedTransport
    private let loop: any EventLoop
    private var handler: (any DatagramHandler)?
    private var isClosed = false

    init(_ inner: any DatagramPort, of owner: CheckedTransport, on loop: any EventLoop) {
        self.inner = inner
        self.owner = owner
        self.loop = loop
    }

    private func check(_ packet: UnsafeMutableRawBufferPointer, by port: any DatagramPort)
        throws(ContractBreach) -> Bool
    {
        guard try owner.checkMayReport("a packet", on: loop) else { return false }
        guard port === inner else {
            throw ContractBreach(.toldInItsOwnName, "a packet was reported in the name of another port")
        }
        guard !isClosed else {
            throw ContractBreach(.pipeQuietAfterClose, "a packet was reported after its port was closed")
        }
        guard !packet.isEmpty else {
            throw ContractBreach(.noEmptySlices, "a packet without bytes was reported")
        }
        return true
    }
}

extension CheckedDatagramPort: DatagramPort {
    var place: [UInt8] { owner.calling { inner.place } }

    var longestPacket: Int { owner.calling { inner.longestPacket } }

    func start(handler: any DatagramHandler, prefix: UInt64?) {
        guard owner.isPassing, !isClosed else { return }
        precondition(self.handler == nil, "a port was started twice")
        self.handler = handler
        owner.calling { inner.start(handler: self, prefix: prefix) }
    }

    func source(of place: [UInt8]) -> DatagramSource? { owner.calling { inner.source(of: place) } }

    func send(_ packet: UnsafeRawBufferPointer, to source: DatagramSource) -> DatagramOutcome {
        guard owner.isPassing, !isClosed else { return .dropped }
        return owner.calling { inner.send(packet, to: source) }
    }

    func close() {
        isClosed = true
        handler = nil
        owner.calling { inner.close() }
    }
}

extension CheckedDatagramPort: DatagramHandler {
    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        do throws(ContractBreach) {
            guard try check(packet, by: port) else { return }
            handler?.datagramPort(self, received: packet, from: source)
        } catch {
            owner.handleBreach(error, on: loop)
        }
    }
}
