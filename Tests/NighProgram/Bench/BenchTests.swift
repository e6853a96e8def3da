import ChildPrograms
import Foundation
import NighCore
import NighLoop
import NighTestKit
import Testing

@testable import nigh

/// Tests `nigh bench` as a user runs it.
@Suite(.callsPrograms) struct BenchTests {
    private let user = NighUser()
    private static let short = "\(byAddress) --seconds 0.3 --warm-up 50ms"
    /// Options for 48 runs. Something that happens after the first one happens before the last.
    private static let manySizes =
        "\(short) --json-lines -d each --size \((8...23).map(String.init).joined(separator: ","))"

    @Test func `Up, down and both are measured, and reported in a table`() throws {
        let host = try Listener("host --name Puma")
        let call = try user.run("bench \(host.address) \(Self.short)")
        #expect(call.lines[0].hasPrefix("Puma (") && call.lines[0].contains("encrypted"))
        #expect(call.lines.count == 6)
        for (line, direction) in zip(call.lines.dropFirst(2), ["up", "down", "up of both", "down of both"]) {
            #expect(line.contains("16 KiB  \(direction) ") && line.contains("B/s"), "\(line)")
        }
        #expect(try host.end().summary["runs_measured"].int == 3)
    }

    @Test func `Both ends count the same, and lines come as it goes on`() throws {
        let host = try Listener("host")
        let whole = try user.run("bench \(host.address) --json --size 8,1M -d both \(Self.short)")
        let runs = whole.json["runs"].list
        #expect(runs.map { $0["size"].int } == [8, 1 << 20])
        for run in runs {
            for direction in ["up", "down"] {
                let (sent, received) = (run[direction]["sent"], run[direction]["received"])
                #expect(sent["messages"].int == received["messages"].int && received["bytes"].int ?? 0 > 0)
            }
            #expect(run["round_trip_ms"]["count"].int ?? 0 > 0)
        }
        let lines = try user.run(
            "bench \(host.address) --json-lines -d down --security encrypted --seconds 1.2 \(byAddress)")
        let types = lines.objects.map { $0["type"].string }
        #expect(types.first == "idle" && types.contains("second") && types.suffix(2) == ["run", "summary"])
    }

    @Test func `Packets beside the link are measured without load and in each run`() throws {
        let host = try Listener("host")
        let line = "bench \(host.address) -d up --seconds 5 --warm-up 100ms --datagrams \(byAddress)"
        let json = try user.run("\(line) --json").json
        let (idle, run) = (json["idle"][0]["packets"], json["runs"][0]["packets"])
        // On a busy machine an answer may come too late to count.
        #expect(idle["sent"].int == 100 && idle["received"].int ?? 0 > 0)
        #expect(run["received"].int ?? 0 > 0 && run["round_trip_ms"].isObject)
        let words = try user.run(line.replacing("--seconds 5", with: "--seconds 1"))
        for beginning in ["without load  ", "1, up"] {
            #expect(words.lines.contains { $0.hasPrefix(beginning) }, "\(words.lines)")
        }
        try user.run("\(line) --inject loss=all", status: 1, says: "UDP")
    }

    @Test func `A rate that is missed gives status 4, and one that is reached gives 0`() throws {
        let host = try Listener("host")
        let line = "bench \(host.address) --json -d up \(Self.short)"
        #expect(try user.run("\(line) --min-rate 900G", status: 4).json["missed"].list.count == 1)
        try user.run("\(line) --min-rate 1k")
    }

    @Test func `A rate-limited link is measured correctly, and without a long delay`() throws {
        let host = try Listener("host")
        let call = try user.run(
            "bench \(host.address) --json -d up --size 4k --seconds 3 --inject rate=2m \(byAddress)")
        let rate = try #require(call.json["runs"][0]["up"]["received"]["bytes_per_second"].double)
        // A side that stands still for a second moves the rate, but not to that of an unlimited link.
        #expect((300_000...10_000_000).contains(rate), "\(call)")
    }

    /// Starts a measurement that lasts, and waits until it has measured for a second.
    private func measuring(_ host: Listener) throws -> Child {
        let child = try user.start("bench \(host.address) --json-lines -d both --seconds 60 \(byAddress)")
        try child.line(with: "\"second\"")
        return child
    }

    @Test func `Only one measures at a time, and a killed one leaves room for the next`() throws {
        let host = try Listener("host")
        let first = try measuring(host)
        let other = NighUser()
        try other.run("bench \(host.address) --json \(Self.short)", status: 1, says: "is measuring here now")
        try other.run("ping \(host.address) -c 1 --timeout 1m \(byAddress)")
        first.send(SIGKILL)
        try host.child.line(with: "\"reconnecting\"")
        try other.run("bench \(host.address) -d both \(Self.short)")
        #expect(try host.end().summary["measured_by"].int == 2)
    }

    @Test func `If it ends before there was anything to tell, the status is 1`() throws {
        for isHost in [false, true] {
            let host = try Listener("host --name \(isHost ? "Puma" : "Ocelot")")
            let child = try measuring(host)
            if isHost { host.child.send(SIGKILL) } else { child.send(SIGINT) }
            let call = try child.finish(status: 1)
            #expect(call.errors.count == 1, "\(call.errors)")
        }
    }

    @Test(arguments: [false, true])
    func `If it ends in a later run, the runs before are reported`(_ isHost: Bool) throws {
        let host = try Listener("host")
        let child = try user.start("bench \(host.address) \(Self.manySizes)")
        try child.line(with: "\"type\":\"run\"")
        if isHost { host.child.send(SIGKILL) } else { child.send(SIGINT) }
        let call = try child.finish(status: isHost ? 1 : 0)
        #expect(call.errors.count == (isHost ? 1 : 0), "\(call)")
        #expect(call.summary["peer"].isObject && call.summary["error"].isObject == isHost, "\(call.summary)")
        #expect(isHost || call.summary["interrupted"].bool == true)
    }

    @Test func `If the report cannot be written, the runs are reported, and the status is 1`() throws {
        let host = try Listener("host")
        // Nobody reads it, so it cannot be opened for writing.
        let pipe = "\(user.folder.path)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let call = try user.fail("bench \(host.address) --json -d up --report \(pipe) --force \(Self.short)")
        #expect(call.json["runs"].list.count == 1)
        #expect(call.json["report"].isNull && call.json["error"].isObject, "\(call)")
    }

    // MARK: Peers that break the protocol

    private static let hello = BenchMessage.hello(versions: 1...1, software: "x").bytes
    private static let welcome = BenchMessage.welcome(version: 1, limits: .own, software: "").bytes

    private static func order(
        run: UInt16 = 1, size: UInt32 = 64, measured: UInt32 = 100, _ direction: BenchDirection = .up
    ) -> [UInt8] {
        let order = BenchOrder(run: run, direction: direction, size: size, warmUp: 0, measured: measured)
        return BenchMessage.order(order).bytes
    }

    /// Calls the host, and sends it these messages. A stranger that was disconnected cannot send the rest.
    private func speak(
        _ speech: [(Lane, [UInt8])], to host: Listener, for purpose: InvitationPurpose = .bench,
        until isOver: ((SessionProbe, PeerID) -> Bool) = { $0.states(of: $1).contains(.disconnected) }
    ) async throws {
        let stranger = try ForeignSession(role: .client)
        let id = try await stranger.call(host.address, for: purpose.context)
        for (lane, message) in speech {
            try? stranger.session.trySend(message, to: id, .reliable(lane))
        }
        try #require(stranger.probe.wait { isOver($0, id) })
        await stranger.end()
    }

    @Test func `A host disconnects a peer that breaks the protocol, and continues`() async throws {
        let host = try Listener("host")
        let (hello, order) = ((Lane.main, Self.hello), (Lane.main, Self.order()))
        let nothing = BenchCount(amount: .init(), nanoseconds: 1)
        // More messages than any number; the second hello ends the conversation after the host has read it.
        let boast = BenchProgress(microseconds: 0, sent: .init(), received: .init(messages: .max, bytes: 0))
        let speeches: [[(Lane, [UInt8])]] = [
            [(.main, [])], [(.main, [UInt8](repeating: 7, count: 100_000))], [hello, hello], [order],
            [hello, (.main, Self.order(run: 2))], [hello, order, order], [(.bulk, [0, 0, 0, 1])],
            [hello, order, (.bulk, [9])], [hello, (.main, BenchMessage.ready(run: 1).bytes)],
            [hello, (.main, BenchMessage.outcome(run: 1, nothing).bytes)],
            [hello, order, (.bulk, BenchPayload(run: 1, size: 64).end(nothing))],
            [hello, (.main, Self.order(.down)), (.main, BenchMessage.progress(run: 1, boast).bytes), hello],
        ]
        for speech in speeches { try await speak(speech, to: host) }
        try await speak([(.main, [1])], to: host, for: .ping)
        try user.run("bench \(host.address) -d up \(Self.short)")
        let end = try host.end()
        #expect(end.errors.count { $0.contains("is disconnected: ") } >= speeches.count, "\(end.errors)")
    }

    @Test func `Impossible sizes and times are refused with a reason`() async throws {
        let host = try Listener("host")
        let orders = [
            Self.order(run: 1, size: .max, .down), Self.order(run: 2, size: 0),
            Self.order(run: 3, measured: .max, .both), Self.order(run: 4, measured: 0),
        ]
        try await speak(([Self.hello] + orders).map { (.main, $0) }, to: host) { probe, _ in
            probe.messages.count { $0.bytes.first == 5 } == orders.count
        }
        try host.end()
    }

    @Test(
        arguments: [
            [[UInt8](repeating: 1, count: 3)], [BenchMessage.ready(run: 1).bytes],
            [BenchMessage.refused(run: 0, reason: "not today").bytes],
            [BenchMessage.welcome(version: 9, limits: .own, software: "").bytes], [welcome, [255]],
            [welcome, order()],
        ])
    func `A client ends with one sentence, whatever its host sends`(_ words: [[UInt8]]) async throws {
        let stranger = try ForeignSession()
        stranger.probe.messageReaction = { message, origin, session in
            for reply in message.first == 1 ? words : [[200]] { try? session.trySend(reply, to: origin.peer) }
        }
        try user.fail("bench \(stranger.address) --json \(Self.short)")
        await stranger.end()
    }
}

/// Tests the page that `nigh bench --report` writes, in a browser.
@Suite(.callsPrograms) struct ReportTests {
    private let user = NighUser()

    /// The numeric values of all attributes with that name.
    private func counts(_ attribute: String, in page: String) -> [Int] {
        page.components(separatedBy: "\(attribute)=\"").dropFirst().compactMap {
            Int($0.prefix { $0 != "\"" })
        }
    }

    @Test func `A browser shows the plots, and runs nothing that is in a peer's name`() throws {
        let name = "<script>document.title='owned'</script>\"'&"
        let host = try Listener("host", "--name", name)
        let path = "\(user.folder.path)/report.html"
        let bench = "bench \(host.address) \(byAddress) --report \(path)"
        #expect(try user.run("\(bench) --seconds 4 -d both --json").json["report"].string == path)

        let picture = "\(user.folder.path)/page.png"
        let (_, page, errors) = try Browser.visit(
            "file://\(path)",
            ["--enable-logging=stderr", "--window-size=900,1800", "--screenshot=\(picture)"])
        #expect(FileManager.default.fileExists(atPath: picture))
        #expect(!errors.contains { $0.contains("CONSOLE") }, "\(errors)")
        #expect(!page.lowercased().contains("<script") && !page.contains("owned</title>"))
        let shown = "&lt;script&gt;document.title='owned'&lt;/script&gt;\"'&amp;</h1>"
        #expect(page.contains(shown), "\(page.prefix(6_000))")
        for name in ["up: sent here", "up: received there", "down: sent there", "down: received here"] {
            #expect(page.contains("data-series=\"\(name)\""))
        }
        let series = counts("data-count", in: page)
        #expect(series.count == 6 && series.prefix(5).allSatisfy { $0 >= 4 } && series[5] >= 1, "\(series)")
        #expect(page.components(separatedBy: "<circle").count - 1 == series[4] + 1, "and one beside its name")
        #expect(page.components(separatedBy: "<figure>").count - 1 == 3)
        #expect(!page.contains("http://") && !page.contains("https://"), "it fetches nothing")

        try user.run(bench, status: 2, says: "--force")
        try user.run("\(bench) --seconds 0.1 -d up --force")
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("down: received here") == false)
    }

    @Test func `A stranger's words stay text, wherever they are shown`() {
        let name = "<b a='1' c=\"2\">&\u{202E}"
        let markup: Markup = "<p title=\"\(name)\">\([name, name].map { "<i>\($0)</i>" as Markup })</p>"
        let safe = "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\u{FFFD}"
        #expect(markup.description == "<p title=\"\(safe)\"><i>\(safe)</i><i>\(safe)</i></p>")
    }

    @Test(
        arguments: [
            (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1]), (7, [0, 2, 4, 6]), (92, [0, 20, 40, 60, 80]), (0, [0]),
        ] as [(Double, [Double])])
    func `An axis has a few ticks, at round numbers`(_ end: Double, _ expected: [Double]) {
        let ticks = Plot.ticks(to: end)
        #expect(
            ticks.count == expected.count && zip(ticks, expected).allSatisfy { abs($0 - $1) < 1e-9 },
            "\(ticks)")
    }
}
