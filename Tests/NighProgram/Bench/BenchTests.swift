import ChildPrograms
import Foundation
import NighLoop
import Testing

@testable import nigh

/// Tests `nigh bench` as a user runs it.
@Suite(.callsPrograms) struct BenchTests {
    private let user = NighUser()
    private let transport = ["-t", HostInTests.transport]
    private let short = ["--seconds", "0.3", "--warm-up", "50ms"]
    /// Options for 48 runs. Something that happens after the first one happens before the last.
    private static let manySizes = ["--size", (8...23).map { "\($0)" }.joined(separator: ",")]

    @Test("Up, down and both are measured, and reported in a table")
    func text() throws {
        let host = try HostInTests("--name", "Puma")
        let call = try user.run(["bench", host.address] + transport + short)
        #expect(call.status == 0, "\(call)")
        #expect(
            call.lines.first?.hasPrefix("Puma (") == true && call.lines.first?.contains("encrypted") == true)
        #expect(call.lines.count == 6)
        for (line, direction) in zip(call.lines.dropFirst(2), ["up", "down", "up of both", "down of both"]) {
            #expect(line.contains("16 KiB  \(direction) ") && line.contains("B/s"), "\(line)")
        }
        let end = try host.end()
        try end.expectSchema("host", lines: true)
        #expect(try end.objects().last?["runs_measured"] as? Int == 3)
    }

    @Test("The JSON output matches its schema, and both ends count the same")
    func json() throws {
        let host = try HostInTests()
        let whole = try user.run(
            ["bench", host.address, "--json", "--size", "8,1M", "-d", "both"] + transport + short)
        #expect(whole.status == 0, "\(whole)")
        try whole.expectSchema("bench")
        let runs = try #require(try whole.object()["runs"] as? [[String: Any]])
        #expect(runs.map { $0["size"] as? Int } == [8, 1 << 20])
        for run in runs {
            for direction in ["up", "down"] {
                let result = try #require(run[direction] as? [String: [String: Any]])
                #expect(result["sent"]?["messages"] as? Int == result["received"]?["messages"] as? Int)
                #expect((result["received"]?["bytes"] as? Int ?? 0) > 0)
            }
            #expect(((run["round_trip_ms"] as? [String: Any])?["count"] as? Int ?? 0) > 0)
        }
        let lines = try user.run(
            [
                "bench", host.address, "--json-lines", "-d", "down", "--security", "encrypted", "--seconds",
                "1.2",
            ] + transport)
        try lines.expectSchema("bench", lines: true)
        let types = try lines.objects().map { $0["type"] as? String }
        #expect(types.first == "idle" && types.contains("second") && types.suffix(2) == ["run", "summary"])
    }

    @Test("Packets beside the link are measured without load and in each run")
    func datagrams() throws {
        let host = try HostInTests()
        let common =
            ["bench", host.address, "-d", "up", "--seconds", "5", "--warm-up", "100ms", "--datagrams"]
            + transport
        let call = try user.run(common + ["--json"])
        #expect(call.status == 0)
        try call.expectSchema("bench")
        let object = try call.object()
        let idle = try #require((object["idle"] as? [[String: Any]])?.first?["packets"] as? [String: Any])
        // On a busy machine an answer may come too late to count.
        #expect(idle["sent"] as? Int == 100 && idle["received"] as? Int ?? 0 > 0)
        let run = try #require((object["runs"] as? [[String: Any]])?.first?["packets"] as? [String: Any])
        #expect(run["received"] as? Int ?? 0 > 0 && run["round_trip_ms"] is [String: Any])
        let words = try user.run(common)
        #expect(
            words.lines.contains { $0.hasPrefix("without load  ") }, "\(words.lines)")
        #expect(words.lines.contains { $0.hasPrefix("1, up") })
        let blocked = try user.run(common + ["--inject", "loss=all"])
        #expect(blocked.status == 1 && blocked.errors.contains { $0.contains("UDP") }, "\(blocked)")
    }

    @Test("A rate that is missed gives status 4, and one that is reached gives 0")
    func threshold() throws {
        let host = try HostInTests()
        let common = ["bench", host.address, "--json", "-d", "up"] + transport + short
        let missed = try user.run(common + ["--min-rate", "900G"])
        #expect(missed.status == 4)
        #expect((try missed.object()["missed"] as? [String])?.count == 1)
        #expect(try user.run(common + ["--min-rate", "1k"]).status == 0)
    }

    @Test("A rate-limited link is measured correctly, and without a long delay")
    func slow() throws {
        let host = try HostInTests()
        let call = try user.run(
            [
                "bench", host.address, "--json", "-d", "up", "--size", "4k", "--seconds", "3", "--inject",
                "rate=2m",
            ] + transport)
        let run = try #require((try call.object()["runs"] as? [[String: Any]])?.first)
        let received = (run["up"] as? [String: [String: Any]])?["received"]
        let rate = try #require(received?["bytes_per_second"] as? Double)
        // A side that stands still for a second moves the rate, but not to that of an unlimited link.
        #expect((300_000...10_000_000).contains(rate), "\(call)")
    }

    @Test("While one client measures, another gets an error, and may ping")
    func two() throws {
        let host = try HostInTests()
        let first = try user.start(
            ["bench", host.address, "-d", "up", "--json-lines", "--seconds", "60"] + transport)
        try first.line(with: "\"second\"")
        let second = try NighUser().run(["bench", host.address, "--json"] + transport + short)
        #expect(second.status == 1)
        try second.expectSchema("bench")
        #expect(second.errors.first?.contains("is measuring here now") == true, "\(second)")
        #expect(
            try NighUser().run(
                ["ping", host.address, "-c", "1", "--timeout", "1m"] + transport
            ).status == 0)
        first.send(SIGINT)
        #expect(try NighCall(finishing: first).status == 1, "interrupted before there was anything to tell")
    }

    @Test("A host survives a client that is killed, and measures with the next client")
    func vanishing() throws {
        let host = try HostInTests()
        let first = try user.start(
            ["bench", host.address, "--json-lines", "-d", "both", "--seconds", "60"] + transport)
        try first.line(with: "\"second\"")
        first.send(SIGKILL)
        try host.child.line(with: "\"reconnecting\"")
        let second = try NighUser().run(["bench", host.address, "-d", "both"] + transport + short)
        #expect(second.status == 0, "\(second)")
        let end = try host.end()
        try end.expectSchema("host", lines: true)
        #expect(try end.objects().last?["measured_by"] as? Int == 2)
    }

    @Test("A client reports that its host was killed, in bounded time")
    func killed() throws {
        let host = try HostInTests()
        let child = try user.start(
            ["bench", host.address, "--json-lines", "-d", "up", "--seconds", "60"] + transport)
        try child.line(with: "\"second\"")
        host.child.send(SIGKILL)
        let call = try NighCall(finishing: child)
        #expect(call.status == 1)
        try call.expectSchema("bench", lines: true)
        #expect(call.errors.count == 1, "\(call.errors)")
    }

    @Test("If the host is killed in a later run, the runs before are reported, and so is the error")
    func killedLater() throws {
        let host = try HostInTests()
        let child = try user.start(
            ["bench", host.address, "--json-lines", "-d", "each"] + Self.manySizes + transport + short)
        try child.line(with: "\"type\":\"run\"")
        host.child.send(SIGKILL)
        let call = try NighCall(finishing: child)
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
        try call.expectSchema("bench", lines: true)
        let summary = try #require(try call.objects().last)
        #expect(summary["peer"] is [String: Any] && summary["error"] is [String: Any], "\(summary)")
    }

    @Test("If the report cannot be written at the end, the runs are reported, and the status is 1")
    func unwritableReport() throws {
        let host = try HostInTests()
        // Nobody reads it, so it cannot be opened for writing.
        let pipe = "\(user.folder.path)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let call = try user.run(
            ["bench", host.address, "--json", "-d", "up", "--report", pipe, "--force"] + transport + short)
        #expect(call.status == 1 && call.errors.count == 1, "\(call)")
        try call.expectSchema("bench")
        let object = try call.object()
        #expect((object["runs"] as? [Any])?.count == 1)
        #expect(object["report"] is NSNull && object["error"] is [String: Any], "\(object)")
    }

    @Test("Ctrl-C prints the results so far")
    func interrupt() throws {
        let host = try HostInTests()
        let child = try user.start(
            ["bench", host.address, "--json-lines", "-d", "each"] + Self.manySizes + transport + short)
        try child.line(with: "\"type\":\"run\"")
        child.send(SIGINT)
        let call = try NighCall(finishing: child)
        #expect(call.status == 0)
        let summary = try #require(try call.objects().last)
        #expect(summary["interrupted"] as? Bool == true)
    }

    // MARK: Peers that break the protocol

    private static let hello = BenchMessage.hello(versions: 1...1, software: "x").bytes

    private static func order(
        run: UInt16 = 1, size: UInt32 = 64, measured: UInt32 = 100, _ direction: BenchDirection = .up
    ) -> [UInt8] {
        BenchMessage.order(
            BenchOrder(run: run, direction: direction, size: size, warmUp: 0, measured: measured)
        ).bytes
    }

    @Test("If no transport works, the status is 3, and the reason is reported")
    func unavailable() throws {
        let call = try user.run("bench", "Puma", "-t", "bluetooth:adapter=hci60000", "--json")
        #expect(call.status == 3, "\(call)")
        try call.expectSchema("bench")
    }

    @Test("A host disconnects a peer that breaks the protocol, and continues")
    func garbage() async throws {
        let host = try HostInTests()
        let address = try #require(TransportAddress(host.address))
        let (hello, order) = (Self.hello, Self.order())
        let speeches: [[(Lane, [UInt8])]] = [
            [(.main, [])], [(.main, [UInt8](repeating: 7, count: 100_000))],
            [(.main, hello), (.main, hello)],
            [(.main, order)], [(.main, hello), (.main, Self.order(run: 2))],
            [(.main, hello), (.main, order), (.main, order)],
            [(.bulk, [0, 0, 0, 1])], [(.main, hello), (.main, order), (.bulk, [9])],
            [(.main, hello), (.main, BenchMessage.ready(run: 1).bytes)],
            [
                (.main, hello),
                (.main, BenchMessage.outcome(run: 1, BenchCount(amount: .init(), nanoseconds: 1)).bytes),
            ],
            [
                (.main, hello), (.main, order),
                (.bulk, BenchPayload(run: 1, size: 64).end(.init(amount: .init(), nanoseconds: 1))),
            ],
        ]
        for speech in speeches {
            let stranger = try StrangerInTests()
            stranger.start()
            let id = try await stranger.session.invite(at: address, context: Purpose.bench.context)
            // A stranger that was disconnected after its first message cannot send the second.
            for (lane, message) in speech {
                try? stranger.session.trySend(message, to: id, .reliable(lane))
            }
            await stranger.until { isConnected, _ in !isConnected }
            await stranger.end()
        }
        let call = try user.run(["bench", host.address, "-d", "up"] + transport + short)
        #expect(call.status == 0, "\(call)")
        let end = try host.end()
        #expect(end.errors.count { $0.contains("is disconnected: ") } == speeches.count, "\(end.errors)")
    }

    @Test("A host goes on although a guest says that it has received more than any number of messages")
    func boast() async throws {
        let host = try HostInTests()
        let address = try #require(TransportAddress(host.address))
        let stranger = try StrangerInTests()
        stranger.start()
        let id = try await stranger.session.invite(at: address, context: Purpose.bench.context)
        let boast = BenchProgress(
            microseconds: 0, sent: .init(), received: .init(messages: .max, bytes: 0))
        // The second hello ends the conversation, after the host has read what comes before it.
        let messages = [
            Self.hello, Self.order(.down), BenchMessage.progress(run: 1, boast).bytes, Self.hello,
        ]
        for message in messages { try? stranger.session.trySend(message, to: id) }
        await stranger.until { isConnected, _ in !isConnected }
        await stranger.end()
        let end = try host.end()
        #expect(end.status == 0 && end.errors.contains { $0.contains("a second hello") }, "\(end)")
    }

    @Test("Impossible sizes and times are refused with a reason, and so are messages from a ping guest")
    func absurd() async throws {
        let host = try HostInTests()
        let address = try #require(TransportAddress(host.address))
        let stranger = try StrangerInTests()
        stranger.start()
        let id = try await stranger.session.invite(at: address, context: Purpose.bench.context)
        try stranger.session.trySend(Self.hello, to: id)
        let orders = [
            Self.order(run: 1, size: .max, .down), Self.order(run: 2, size: 0),
            Self.order(run: 3, measured: .max, .both),
            Self.order(run: 4, measured: 0),
        ]
        for order in orders { try stranger.session.trySend(order, to: id) }
        await stranger.until { _, received in received.count { $0.first == 5 } == orders.count }
        await stranger.end()

        let talker = try StrangerInTests()
        talker.start()
        let host2 = try await talker.session.invite(at: address, context: Purpose.ping.context)
        try talker.session.trySend([1], to: host2)
        await talker.until { isConnected, _ in !isConnected }
        await talker.end()
        #expect(try host.end().status == 0)
    }

    @Test(
        "A client ends with one sentence, whatever its host sends",
        arguments: [
            [[UInt8](repeating: 1, count: 3)],
            [BenchMessage.ready(run: 1).bytes],
            [BenchMessage.refused(run: 0, reason: "not today").bytes],
            [BenchMessage.welcome(version: 9, limits: .own, software: "").bytes],
            [BenchMessage.welcome(version: 1, limits: .own, software: "").bytes, [255]],
            [BenchMessage.welcome(version: 1, limits: .own, software: "").bytes, Self.order()],
        ])
    func hostileHost(_ words: [[UInt8]]) async throws {
        let stranger = try StrangerInTests { message in message.first == 1 ? words : [[200]] }
        stranger.start()
        let address = await stranger.reached()
        let call = try user.run(["bench", address, "--json"] + transport + short)
        #expect(call.status == 1, "\(call)")
        try call.expectSchema("bench")
        #expect(call.errors.count == 1, "\(call.errors)")
        await stranger.end()
    }

    @Test(
        "A wrong command line ends with status 2 and one sentence",
        arguments: [
            ["bench"], ["bench", "a", "--size", "7"], ["bench", "a", "--size", "1k,,2k"],
            ["bench", "a", "--size", "17M"],
            ["bench", "a", "--seconds", "0"], ["bench", "a", "--seconds", "601"],
            ["bench", "a", "-d", "sideways"],
            ["bench", "a", "--force"], ["bench", "a", "--report", "/proc/nowhere/a.html"],
            ["bench", "a", "--min-rate", "x"],
            ["bench", "a", "--report", "/etc/passwd"], ["bench", "a", "--report", "/etc", "--force"],
        ])
    func misuse(_ arguments: [String]) throws {
        let call = try user.run(arguments)
        #expect(call.status == 2)
        #expect(call.errors.count == 1 && call.lines.isEmpty, "\(call)")
    }

    @Test("The help explains every important option")
    func help() throws {
        let call = try user.run("bench", "--help")
        #expect(call.status == 0)
        let text = call.lines.joined(separator: " ")
        for word in ["nigh host", "--direction", "--min-rate", "--report", "--warm-up"] {
            #expect(text.contains(word))
        }
    }
}
