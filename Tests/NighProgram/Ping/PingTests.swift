import ChildPrograms
import Foundation
import NighCore
import Testing

@testable import nigh

/// Tests `nigh ping` as a user runs it.
@Suite(.callsPrograms) struct PingTests {
    private let user = NighUser()
    /// Options with which a reply of a busy machine is never lost.
    private let patient = "--timeout 1m \(byAddress)"

    @Test func `Each reply is printed with its transport, and a summary follows`() throws {
        let host = try Listener("host --name Puma")
        let lines = try user.run("ping \(host.address) -c 3 -i 1ms \(patient)").lines
        #expect(lines[0].hasPrefix("Puma (") && lines[0].contains(") is connected directly over tcp"))
        for number in 1...3 {
            #expect(lines.contains { $0.hasPrefix("#\(number)  ") && $0.hasSuffix(" ms  tcp") }, "\(lines)")
        }
        #expect(lines.contains { $0.hasSuffix("3 sent, 3 received, 0 % lost") })
        for words in [["round trip: min ", "jitter"], ["p50", "p95", "p99"]] {
            #expect(lines.contains { line in words.allSatisfy(line.contains) }, "\(lines)")
        }
        #expect(lines.last == "carried by tcp 3; 0 reconnects, 0 rejoins")
    }

    @Test func `As JSON each reply is there, up to a limit, except with --quiet`() throws {
        let host = try Listener("host")
        let ping = "ping \(host.address) -i 0 \(patient)"
        let json = try user.run("\(ping) -c 4 --json --size 1k").json
        #expect(json["replies"].list.count == 4 && json["received"].int == 4)
        #expect(json["paths"][0]["received"].int == 4)
        let lines = try user.run("\(ping) -c 2 --json-lines").objects
        #expect(lines.map { $0["type"].string } == ["peer", "reply", "reply", "summary"])
        let quiet = try user.run("\(ping) -c 500 -q --json-lines").objects
        #expect(quiet.map { $0["type"].string } == ["peer", "summary"] && quiet[1]["received"].int == 500)
        let many = try user.run("\(ping) -c 1200 --json").json
        #expect(many["replies"].list.count == 1_000 && many["items_left_out"].int == 200)
        #expect(many["received"].int == 1_200)
    }

    @Test func `Pings travel beside the link, and a network that loses packets loses pings`() throws {
        let host = try Listener("host")
        let ping = "ping \(host.address) --datagrams -i 1ms --json \(byAddress)"
        let json = try user.run("\(ping) --until --size 1k").json
        #expect(json["over"].string == "packets" && json["received"].int == 1)
        let losses = try user.run("\(ping) -c 200 --timeout 200ms --inject loss=20%").json["losses"]
        // On a busy machine answers may be so late that packets count as blocked.
        let lost = (losses["timeout"].int ?? 0) + (losses["blocked"].int ?? 0)
        #expect(lost > 20 && losses["link_lost"].int == 0)
        let blocked = try user.run("\(ping) -c 3 --inject loss=all", status: 1)
        #expect(blocked.json["losses"]["blocked"].int == 3)
    }

    @Test func `A missed threshold gives status 4, and one that is kept gives 0`() throws {
        let host = try Listener("host")
        let ping = "ping \(host.address) -c 5 -i 0 --json \(patient)"
        #expect(try user.run("\(ping) --max-p99 1us", status: 4).json["missed"].list.count == 1)
        try user.run("\(ping) --max-p99 60s --max-loss 5%")
    }

    @Test func `Ctrl-C ends it with its summary`() throws {
        let host = try Listener("host")
        let child = try user.start("ping \(host.address) -i 100ms --json-lines \(patient)")
        try child.line(with: "\"number\":3")
        let summary = try child.finish(after: SIGINT).summary
        #expect(summary["type"].string == "summary" && summary["received"].int ?? 0 >= 3)
        #expect(summary["lost"].int == 0, "what was under way is not lost")
    }

    @Test func `A peer that is killed causes lost pings, and the command ends in time`() throws {
        let host = try Listener("host")
        let child = try user.start("ping \(host.address) -c 600 -i 20ms --json-lines \(byAddress)")
        try child.line(with: "\"number\":2")
        host.child.send(SIGKILL)
        let call = try child.finish()
        #expect(call.summary["sent"].int == 600 && call.summary["lost"].int ?? 0 > 0)
        #expect(call.objects.contains { $0["change"].string == "reconnecting" })
        let losses = call.summary["losses"]
        #expect((losses["no_link"].int ?? 0) + (losses["link_lost"].int ?? 0) > 0, "\(call.lines)")
    }

    @Test func `A peer that returns is pinged again, in a new conversation`() throws {
        let host = try Listener("host")
        let child = try user.start("ping \(host.address) -i 20ms --json-lines \(byAddress)")
        try child.line(with: "\"number\":2")
        host.child.send(SIGKILL)
        try child.line(with: "\"reconnecting\"")
        let again = try Listener("host", of: host.user, port: host.port)
        try child.line(with: "\"rejoined\"")
        try child.line(with: "\"after_reconnect\":true")
        let summary = try child.finish(after: SIGINT).summary
        #expect(summary["rejoins"].int == 1 && summary["lost"].int ?? 0 > 0)
        try again.end()
    }

    @Test func `A link that is cut loses pings, and the conversation continues over another`() throws {
        let host = try Listener("host")
        let child = try user.start(
            "ping \(host.address) -i 20ms --json-lines --inject cut-after-bytes=16k \(byAddress)")
        try child.line(with: "\"reconnected\"")
        try child.line(with: "\"after_reconnect\":true")
        let call = try child.finish(after: SIGINT)
        #expect(call.summary["reconnects"].int ?? 0 >= 1 && call.summary["rejoins"].int == 0, "\(call.lines)")
    }

    @Test func `A reply that is late counts as lost, and without any reply the status is 1`() throws {
        let host = try Listener("host")
        let json = try user.run(
            "ping \(host.address) -c 3 -i 1ms --timeout 1ms --json --inject delay=150ms \(byAddress)",
            status: 1
        ).json
        #expect(json["losses"]["timeout"].int == 3 && json["round_trip_ms"].isNull)
        #expect(json["replies"].list.isEmpty)
    }

    @Test func `If nobody is there, the status is 1, and --until waits for a peer`() throws {
        let port = try BoundSocket.freePort()
        let ping = "ping tcp://127.0.0.1:\(port) \(byAddress)"
        try user.fail("\(ping) -c 1 --json --wait 300ms")
        try user.fail("\(ping) --until --wait 300ms")
        let child = try user.start("\(ping) --until --json -v")
        let host = try Listener("host", port: port)
        #expect(try child.finish().json["received"].int == 1)
        try host.end()
    }

    @Test func `A search or a call that takes a while is announced, except with --quiet or as JSON`() throws {
        for option in ["", "--quiet", "--json"] {
            let call = try user.run("ping Nobody --wait 2s \(byAddress) \(option)", status: 1)
            #expect(call.errors.count == (option.isEmpty ? 2 : 1), "\(call)")
            #expect(call.errors.contains("nigh: looking for Nobody …") == option.isEmpty, "\(call)")
        }
        // It accepts a connection, and says nothing.
        let silent = try BoundSocket().listens()
        let call = try user.run("ping tcp://127.0.0.1:\(silent.port) --wait 2s \(byAddress)", status: 1)
        #expect(call.errors.first == "nigh: calling tcp://127.0.0.1:\(silent.port) …", "\(call)")
    }

    @Test func `A peer is found by its name or by the beginning of its PeerID`() throws {
        let (name, session) = ("Puma \(UInt32.random(in: 0 ... .max))", NighUser.meetingPlace())
        let host = try NighUser().start("host \(session) --json-lines --name", name)
        let id = try #require(host.json(with: "\"peer_id\"")["peer_id"].string)
        for choice in [name, String(id.prefix(6))] {
            let call = try user.run("ping -c 1 --timeout 1m \(session) --json", choice)
            #expect(call.json["peer"]["name"].string == name)
        }
    }
}

/// Tests that a histogram needs a fixed amount of memory and still reports correct values.
@Suite(.callsPrograms) struct HistogramTests {
    @Test(arguments: 0..<20)
    func `Percentiles are within 1.6 % of the nearest rank, and the ends and the mean are exact`(seed: UInt64)
    {
        var chance = SeededGenerator(seed: seed)
        let greatest = Int64(1) << Int64.random(in: 0...41, using: &chance)
        let spans = (0..<Int.random(in: 1...500, using: &chance)).map { _ in
            Int64.random(in: 0...greatest, using: &chance)
        }
        var histogram = LogLinearHistogram()
        for span in spans { histogram.add(nanoseconds: span) }
        let sorted = spans.sorted()
        for share in [0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1] {
            let rank = min(max(Int((share * Double(spans.count)).rounded(.up)), 1), spans.count)
            let exact = Double(sorted[rank - 1])
            let reported = Double(histogram.percentile(share) ?? -1)
            #expect(abs(reported - exact) <= exact / 63 + 0.5, "\(share): \(reported) for \(exact)")
        }
        #expect(histogram.least == sorted.first && histogram.greatest == sorted.last)
        #expect(histogram.percentile(1) == sorted.last)
        let mean = spans.reduce(0.0) { $0 + Double($1) } / Double(spans.count)
        #expect(abs((histogram.mean ?? -1) - mean) <= mean * 1e-9)
        #expect(histogram.count == spans.count)
    }

    @Test(arguments: 0..<20) func `The bars contain every value, side by side`(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        var histogram = LogLinearHistogram()
        for _ in 0..<200 { histogram.add(nanoseconds: Int64.random(in: 0...1 << 30, using: &chance)) }
        let limit = Int.random(in: 1...40, using: &chance)
        let bars = histogram.bars(atMost: limit)
        #expect((1...limit).contains(bars.count))
        #expect(bars.map(\.count).reduce(0, +) == 200)
        for (left, right) in zip(bars, bars.dropFirst()) {
            #expect(left.range.upperBound + 1 == right.range.lowerBound)
        }
    }

    @Test func `Without values there are no results; negative values and values above an hour are kept`() {
        var histogram = LogLinearHistogram()
        #expect(
            histogram.percentile(0.5) == nil && histogram.mean == nil && histogram.bars(atMost: 5).isEmpty)
        histogram.add(nanoseconds: -5)
        #expect(histogram.least == 0 && histogram.percentile(0.5) == 0)
        histogram.add(nanoseconds: .max)
        #expect(histogram.greatest == .max && histogram.percentile(1) == .max)
        #expect(histogram.bars(atMost: 3).map(\.count).reduce(0, +) == 2)
    }

    @Test func `Jitter is the mean absolute difference between each round trip and the one before`() {
        var record = RoundTripRecord()
        #expect(record.jitter == 0 && record.json == .null && record.statistics.isEmpty)
        for milliseconds in [10, 12, 9, 9] { record.add(.milliseconds(milliseconds)) }
        #expect(record.jitter == (2_000_000 + 3_000_000 + 0) / 3.0)
        #expect(record.statistics.first == "min 9.000 ms, mean 10.00 ms, max 12.00 ms, jitter 1.667 ms")
    }

    @Test func `A threshold is missed only by a value above it`() {
        var tally = PingTally()
        for number in 1...100 {
            tally.send()
            if number <= 5 {
                tally.lose(by: .timeout)
            } else {
                tally.receive(number, after: .milliseconds(20), over: "tcp")
            }
        }
        #expect(PingThresholds(p99: .milliseconds(20), loss: 0.05).missed(by: tally).isEmpty)
        #expect(PingThresholds(p99: .milliseconds(19), loss: nil).missed(by: tally).count == 1)
        #expect(PingThresholds(p99: nil, loss: 0.049).missed(by: tally).count == 1)
        tally.send()
        tally.discardPending()
        #expect(tally.sent == 100 && tally.loss == 0.05)
    }
}
