import NighCore
import NighTestKit

@testable import SerialTransport

/// A wire in virtual time that loses and changes bytes, driven by one seed, and the devices at its two ends.
final class SimulatedWire: @unchecked Sendable {
    // `@unchecked Sendable`: everything is on the one loop.
    private let loop: VirtualEventLoop
    private let lossOneIn: Int
    private var random: SeededGenerator
    private var ends: [Int: SimulatedPort] = [:]
    /// While this is set, nothing passes.
    var isPulled = false
    private(set) var lossCount = 0

    init(on loop: VirtualEventLoop, lossOneIn: Int = .max, seed: UInt64 = 1) {
        self.loop = loop
        self.lossOneIn = lossOneIn
        random = SeededGenerator(seed: seed)
    }

    func transport(_ end: Int) -> SerialTransport {
        SerialTransport(speed: 3_000_000) { SimulatedPort(end, of: self) }
    }

    fileprivate func attach(_ port: SimulatedPort) { ends[port.end] = port }
    fileprivate func detach(_ port: SimulatedPort) { if ends[port.end] === port { ends[port.end] = nil } }

    /// Some pieces arrive with a byte changed, or without their last bytes.
    fileprivate func carry(_ bytes: [UInt8], from end: Int) {
        var bytes = bytes
        if lossOneIn < .max, Int.random(in: 0..<lossOneIn, using: &random) == 0 {
            lossCount += 1
            if Bool.random(using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 0x55
            } else {
                bytes.removeLast(Int.random(in: 1...bytes.count, using: &random))
            }
        }
        let sent = bytes
        loop.schedule(at: loop.now + Moment.Span(nanoseconds: 100_000)) { [self] in
            if !isPulled, !sent.isEmpty { sent.withUnsafeBytes { ends[1 - end]?.received($0) } }
        }
    }
}

final class SimulatedPort: Port {
    let end: Int
    let waiting = 0
    private let wire: SimulatedWire
    fileprivate var received: (UnsafeRawBufferPointer) -> Void = { _ in }

    init(_ end: Int, of wire: SimulatedWire) {
        self.end = end
        self.wire = wire
    }

    func open(
        on loop: any EventLoop, received: @escaping (UnsafeRawBufferPointer) -> Void,
        drained: @escaping () -> Void, failed: @escaping (NighError) -> Void
    ) throws(NighError) {
        self.received = received
        wire.attach(self)
    }

    func write(_ bytes: [UInt8]) { wire.carry(bytes, from: end) }

    func close(sending last: [UInt8]) {
        wire.carry(last, from: end)
        wire.detach(self)
    }
}
