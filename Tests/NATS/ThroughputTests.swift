import CNATS
import Glibc
import NATSServers
import NighBroker
import NighCore
import NighTestKit
import Testing

@testable import NighNATS

/// Compares a client with bare libnats, in the mode in which programs use that: with threads of its own.
@Suite(.serialized) struct ThroughputTests {
    /// Two bare connections. `@unchecked Sendable`: the counts are atomic or behind the monitor.
    private final class Bare: @unchecked Sendable {
        let library = CNATS()!.pointee
        var sender: OpaquePointer?
        var receiver: OpaquePointer?
        let monitor = Monitor()
        var byteCount = 0
        var packetCount = 0

        init(_ address: String) {
            for connection in [\Bare.sender, \Bare.receiver] {
                var settings: OpaquePointer?
                _ = library.Options_Create(&settings)
                _ = library.Options_SetURL(settings, address)
                precondition(library.Connection_Connect(&self[keyPath: connection], settings) == NATS_OK)
                library.Options_Destroy(settings)
            }
            var subscription: OpaquePointer?
            _ = library.Connection_Subscribe(
                &subscription, receiver, "bare",
                { _, _, message, context in
                    let bare = Unmanaged<Bare>.fromOpaque(context!).takeUnretainedValue()
                    let count = Int(bare.library.Msg_GetDataLength(message))
                    bare.library.Msg_Destroy(message)
                    bare.byteCount += count
                    bare.packetCount += 1
                    if bare.packetCount % 500 == 0 { bare.monitor.change {} }
                }, Unmanaged.passUnretained(self).toOpaque())
            _ = library.Connection_FlushTimeout(receiver, 5_000)
        }

        func close() {
            library.Connection_Destroy(sender)
            library.Connection_Destroy(receiver)
        }
    }

    private static let packet = [UInt8](repeating: 7, count: 65_536)
    /// 320 MiB, in parts that stay below what makes a server slow down a sender.
    private static let rounds = 20
    private static let packetsInARound = 250

    private func megabytesPerSecond(_ span: Moment.Span) -> Double {
        Double(Self.rounds * Self.packetsInARound * Self.packet.count) / Double(span.nanoseconds) * 1_000
    }

    private func measureBare(_ server: NATSServer) -> Double {
        let bare = Bare(server.address)
        defer { bare.close() }
        let start = LoopThread.now
        for round in 1...Self.rounds {
            for _ in 0..<Self.packetsInARound {
                _ = Self.packet.withUnsafeBytes {
                    bare.library.Connection_Publish(bare.sender, "bare", $0.baseAddress, Int32($0.count))
                }
            }
            while bare.packetCount < (round - 1) * Self.packetsInARound { usleep(50) }
        }
        while bare.packetCount < Self.rounds * Self.packetsInARound { usleep(50) }
        return megabytesPerSecond(LoopThread.now - start)
    }

    private func measureOurs(_ server: NATSServer) throws -> Double {
        let (sender, receiver) = (try Client(of: server), try Client(of: server))
        defer { for client in [sender, receiver] { client.shutdown() } }
        receiver.onPacket = { _ in }
        #expect(receiver.subscribe(to: "ours"))
        let start = LoopThread.now
        for round in 1...Self.rounds {
            sender.loop.execute {
                for _ in 0..<Self.packetsInARound {
                    sender.connection.publish(Self.packet, to: "ours", answers: nil)
                }
            }
            while receiver.packetCount < (round - 1) * Self.packetsInARound { usleep(50) }
        }
        while receiver.packetCount < Self.rounds * Self.packetsInARound { usleep(50) }
        return megabytesPerSecond(LoopThread.now - start)
    }

    @Test("Packets of 64 KiB pass about as fast as over bare libnats")
    func throughput() throws {
        let server = try NATSServer()
        var best = (bare: 0.0, ours: 0.0)
        for _ in 0..<4 {
            best.bare = max(best.bare, measureBare(server))
            best.ours = max(best.ours, try measureOurs(server))
        }
        print("64 KiB: bare \(Int(best.bare)) MB/s, ours \(Int(best.ours)) MB/s")
        // The machine may be busy, and this a debug build.
        #expect(best.ours > best.bare * 0.4)
    }

    @Test("A round trip takes little longer than over bare libnats")
    func roundTrip() throws {
        let server = try NATSServer()
        let (one, other) = (try Client(of: server), try Client(of: server))
        defer { for client in [one, other] { client.shutdown() } }
        other.onPacket = { other.connection.publish($0.bytes, to: "one", answers: nil) }
        #expect(one.subscribe(to: "one") && other.subscribe(to: "other"))
        let count = 2_000
        var spans: [Int64] = []
        var start = LoopThread.now
        one.onPacket = { packet in
            spans.append((LoopThread.now - start).nanoseconds)
            if spans.count == count { return one.monitor.change {} }
            start = LoopThread.now
            one.connection.publish(packet.bytes, to: "other", answers: nil)
        }
        one.publish("ping", to: "other")
        #expect(one.wait(within: 60) { one.packetCount == count })
        spans.sort()
        print("round trip: median \(spans[count / 2] / 1_000) µs, lowest \(spans[0] / 1_000) µs")
        #expect(spans[count / 2] < 20_000_000)
    }
}
