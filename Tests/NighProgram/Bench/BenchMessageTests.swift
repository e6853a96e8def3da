import NighLoop
import NighCore
import Testing

@testable import nigh

/// Tests that the messages between the two ends of a measurement are parsed strictly.
@Suite(.callsPrograms) struct BenchMessageTests {
    private static let all: [BenchMessage] = [
        .hello(versions: 1...3, software: "nigh, Linux"),
        .welcome(version: 1, limits: .own, software: "ä"),
        .order(BenchOrder(run: 7, direction: .both, size: 64, warmUp: 1_000, measured: 5_000)),
        .ready(run: 7), .refused(run: 7, reason: "no"),
        .progress(
            run: 7,
            BenchProgress(
                microseconds: 250_000, sent: BenchAmount(messages: 3, bytes: 192),
                received: BenchAmount(messages: .max, bytes: 1))),
        .outcome(
            run: 7, BenchCount(amount: BenchAmount(messages: 3, bytes: 192), nanoseconds: 1_000_000_000)),
    ]

    private func read(_ bytes: [UInt8]) throws(BenchBreach) -> BenchMessage {
        try bytes.withUnsafeBytes { raw in Result { () throws(BenchBreach) in try BenchMessage(raw) } }.get()
    }

    @Test(arguments: all) func `A message is read as it was written`(_ message: BenchMessage) throws {
        #expect(try read(message.bytes) == message)
    }

    @Test func `An order is written as its page says`() {
        let order = BenchOrder(run: 0x0102, direction: .down, size: 0x1000, warmUp: 1_000, measured: 5_000)
        #expect(
            BenchMessage.order(order).bytes == [
                3, 1, 2, 2, 0, 0, 0x10, 0, 0, 0, 0x03, 0xE8, 0, 0, 0x13, 0x88,
            ])
        #expect(
            BenchMessage.hello(versions: 1...1, software: "x").bytes == [1] + Array("nigh".utf8) + [
                1, 1, 1, 0x78,
            ])
    }

    @Test(arguments: all) func `A message that is cut short or too long is refused`(_ message: BenchMessage) {
        let bytes = message.bytes
        for count in bytes.indices {
            #expect(throws: BenchBreach.self) { try read(Array(bytes[..<count])) }
        }
        #expect(throws: BenchBreach.self) { try read(bytes + [0]) }
        #expect(throws: BenchBreach.self) { try read(bytes + [UInt8](repeating: 0, count: 2_000)) }
    }

    @Test(arguments: 0..<8) func `Random bytes are refused, or read as a message that is written the same`(
        seed: UInt64
    ) {
        var chance = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            var bytes = Self.all.randomElement(using: &chance)?.bytes ?? []
            for _ in 0..<Int.random(in: 1...4, using: &chance) where !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &chance)] = .random(in: 0 ... .max, using: &chance)
            }
            guard let message = try? read(bytes) else { continue }
            #expect(message.bytes == bytes)
        }
    }

    @Test func `Words that are not UTF-8, reversed version ranges and unknown directions are refused`() {
        for bytes: [UInt8] in [
            [5, 0, 1, 1, 0xFF], [1] + Array("nigh".utf8) + [2, 1, 0], [1] + Array("hgin".utf8) + [1, 1, 0],
            [3, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1],
            [3, 0, 1, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1], [0], [8], [],
        ] {
            #expect(throws: BenchBreach.self, "\(bytes)") { try read(bytes) }
        }
    }

    @Test func `Orders beyond the limits are refused with a reason, and orders at the limits are accepted`() {
        let fitting = BenchOrder(run: 1, direction: .up, size: 8, warmUp: 0, measured: 600_000)
        #expect(BenchLimits.own.refusal(of: fitting) == nil)
        for change: (inout BenchOrder) -> Void in [
            { $0.size = 7 }, { $0.size = 16 << 20 + 1 }, { $0.size = .max }, { $0.measured = 0 },
            { $0.measured = 600_001 }, { ($0.warmUp, $0.measured) = (.max, .max) }, { $0.warmUp = 1 },
        ] {
            var order = fitting
            change(&order)
            #expect(BenchLimits.own.refusal(of: order) != nil, "\(order)")
        }
    }
}

/// Tests that what arrives during a run is counted or is a violation of the protocol.
@Suite(.callsPrograms) struct BenchReceiverTests {
    private let loop: UVEventLoop
    private let payload = BenchPayload(run: 5, size: 16)

    init() throws { loop = try UVEventLoop.make() }

    private func receiver() -> BenchReceiver {
        BenchReceiver(BenchOrder(run: 5, direction: .up, size: 16, warmUp: 0, measured: 1), loop: loop)
    }

    private func take(_ bytes: [UInt8], by receiver: BenchReceiver) throws -> BenchReceiver.Step {
        try bytes.withUnsafeBytes { try receiver.receive($0) }
    }

    @Test func `Messages and bytes between the mark and the end are measured`() throws {
        let receiver = receiver()
        for number in 0..<10 {
            if number == 3 { _ = try take(payload.mark, by: receiver) }
            _ = try take(payload.slices[number % 4].bytes, by: receiver)
        }
        let sent = BenchCount(amount: BenchAmount(messages: 7, bytes: 112), nanoseconds: 5)
        guard case .complete(let received, sent) = try take(payload.end(sent), by: receiver) else {
            Issue.record("it is not complete")
            return
        }
        #expect(received.amount == sent.amount && receiver.amount.messages == 10)
        loop.shutdown()
    }

    @Test func `A message that is lost, doubled, swapped, cut short or of another run is a violation`() throws
    {
        let messages = payload.slices.map(\.bytes)
        var changed = messages[1]
        changed[15] = 9
        let other = BenchPayload(run: 6, size: 16)
        for wrong in [
            messages[0], messages[2], Array(messages[1].dropLast()), messages[1] + [1], changed, [], [0],
            other.slices[1].bytes, other.mark,
            payload.end(BenchCount(amount: BenchAmount(), nanoseconds: 0)),
        ] {
            let receiver = receiver()
            _ = try take(messages[0], by: receiver)
            #expect(throws: BenchBreach.self, "\(wrong)") { try take(wrong, by: receiver) }
        }
        let receiver = receiver()
        _ = try take(payload.mark, by: receiver)
        #expect(throws: BenchBreach.self) { try take(payload.mark, by: receiver) }
        let claim = BenchCount(amount: BenchAmount(messages: 1, bytes: 16), nanoseconds: 5)
        #expect(throws: BenchBreach.self) { try take(payload.end(claim), by: receiver) }
        loop.shutdown()
    }
}
