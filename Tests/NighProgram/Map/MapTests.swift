import ChildPrograms
import Foundation
import NighCore
import NighIntroductions
import Testing

@testable import nigh

/// Tests `nigh peers --map`, and what other commands say of peers that others introduce or carry, with real programs.
@Suite(.callsPrograms) struct MapCommandTests {
    private let user = NighUser()
    private let session = NighUser.meetingPlace()

    /// Three who chat in a mesh.
    private func chat() throws -> [Child] {
        let first = try NighUser().start("chat -n Puma --mesh \(session)", reads: true)
        let second = try NighUser().start("chat Puma -n Lynx --mesh \(session)", reads: true)
        try second.line(with: "Puma", "has joined, over tcp")
        let third = try NighUser().start("chat Puma -n Hare --mesh \(session)", reads: true)
        try second.line(with: "Hare", "has joined, over tcp")
        return [first, second, third]
    }

    /// Asks for a map until it is whole. It counts as complete after 2 s without a change, in which a busy machine may
    /// get nothing done.
    private func map(_ options: String, until isWhole: (NighCall) -> Bool) throws -> NighCall {
        var call: NighCall
        var attempts = 0
        repeat {
            call = try user.run("peers --map --once --timeout 60s \(options) \(session)")
            attempts += 1
        } while attempts < 5 && !isWhole(call)
        return call
    }

    @Test func `With --once it shows a mesh, as text, as JSON and as a picture`() throws {
        let chatting = try chat()
        let picture = "\(user.folder.path)/mesh.svg"
        let summary = "4 peers, 6 conversations: 6 over tcp"
        let table = try map("-n Otter --svg \(picture) --force") { $0.lines.contains(summary) }
        #expect(table.lines.contains(summary), "\(table)")
        for name in ["Otter", "Puma", "Lynx", "Hare"] {
            #expect(table.lines.contains { $0.contains("  \(name) ") }, "\(table)")
        }
        let svg = try String(contentsOfFile: picture, encoding: .utf8)
        #expect(svg.hasPrefix("<svg") && svg.contains(#"data-kind="tcp" data-count="6""#))
        try user.run(
            "peers --map --once --svg \(picture) \(session)", status: 2, says: "--force overwrites it")

        // Both ends of a conversation between two others tell of it.
        func isWhole(_ call: NighCall) -> Bool {
            let conversations = call.json["conversations"].list
            return conversations.count == 6 && call.json["missing"].list.isEmpty
                && conversations.allSatisfy { $0["transport"].string == "tcp" }
                && conversations.count { $0["told_by"].list.count == 2 } >= 3
        }
        let whole = try map("--json", until: isWhole)
        #expect(isWhole(whole), "\(whole)")

        // Nobody reads it, so it cannot be opened for writing.
        let pipe = "\(user.folder.path)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let unwritten = try user.fail(
            "peers --map --once --json --timeout 60s --svg \(pipe) --force \(session)")
        #expect(unwritten.json["svg"].isNull)
        // The doctor asks nobody else about a peer to which there is a direct way.
        let direct = try user.run("doctor --json --peer Hare --through Puma --timeout 20s \(session)")
        #expect(direct.verdict("peer.through") == nil)
        withExtendedLifetime(chatting) {}
    }

    @Test func `Without --once it reports changes as they happen, also into a file`() throws {
        let chatting = try chat()
        let windows = try TerminalWindows(of: "nigh")
        let file = "\(user.folder.path)/map.txt"
        try NighUser().openTerminal("peers --map -n Boar \(session) >\(file)", in: windows)
        try windows.wait("w", shows: "Ctrl-C ends")
        try windows.wait("the map is in the file") {
            try String(contentsOfFile: file, encoding: .utf8).contains("conversations: ")
        }
        try windows.press("w", "C-c")
        try windows.wait("w", shows: "ended with 0")

        let watching = try user.start("peers --map --json-lines -n Otter \(session)")
        for number in 1...6 { try watching.line(with: "\"change\":\"connected\"", occurrence: number) }
        chatting[2].send(SIGKILL)
        try watching.line(with: "\"interrupted\":true")
        try watching.finish(after: SIGINT)
    }

    @Test func `If nobody is there, no picture is written, and the output points to discover`() throws {
        let picture = "\(user.folder.path)/none.svg"
        try user.fail(
            "peers --map --once --timeout 300ms --json --svg \(picture) \(session)", says: "nigh discover")
        #expect(!FileManager.default.fileExists(atPath: picture))
    }

    @Test func `A program that does not let the session in is named with its reason`() throws {
        let waiting = try NighUser().start("pair --name Puma -v --timeout 1h \(session)")
        let call = try user.run("peers --map --once --timeout 60s \(session)", status: 1)
        #expect(
            call.errors.contains { $0.contains("Puma") && $0.contains("accepts only `nigh pair`") }, "\(call)"
        )
        #expect(call.errors.first?.contains("looking for peers of the service") == true, "\(call)")
        withExtendedLifetime(waiting) {}
    }

    // MARK: Through another peer

    /// A host that carries connections, and another one that is connected to it and that nobody else finds.
    private func carried() throws -> (lynx: Listener, hare: Listener) {
        let carrier = try Listener("host --name Lynx --relays everyone")
        let far = try Listener("host --name Hare --relays everyone --through \(carrier.address) -v")
        try far.child.error(with: "Lynx", "is connected over tcp")
        return (carrier, far)
    }

    private func through(_ carrier: Listener) -> String {
        "--through \(carrier.address) --relays everyone \(byAddress)"
    }

    @Test func `A peer that another one carries is shown with the name of that one`() throws {
        let (carrier, far) = try carried()
        let watching = try user.start("discover --json-lines \(through(carrier))")
        let found = try watching.json(with: "\"event\":\"found\"", "\"name\":\"Hare\"")
        #expect("\(found)".contains("through"))
        try watching.finish(after: SIGINT)
        let once = try user.start("discover --once --timeout 1h -v \(through(carrier))")
        try once.error(with: "Hare (", "can be reached")
        let table = try once.finish(after: SIGINT)
        #expect(table.lines.contains { $0.hasPrefix("Hare") && $0.contains("through Lynx (") }, "\(table)")

        let ping = "ping Hare -c 2 -i 10ms --timeout 1m \(through(carrier))"
        let words = try user.run(ping)
        #expect(words.lines[0].contains(") is connected through Lynx ("), "\(words)")
        #expect(try user.run("\(ping) --json").json["peers"][0]["through"].string?.count == 52)
        try carrier.end()
        try far.end()
    }

    @Test func `A peer to go through that does not answer is named, while the command goes on`() throws {
        let asking = try user.start(
            "discover --once --timeout 1h --through tcp://127.0.0.1:1 \(byAddress)")
        try asking.error(with: "--through tcp://127.0.0.1:1: still looking for a way to it")
        try asking.finish(after: SIGINT, status: 1)
    }

    @Test func `The doctor says how two others are connected, and which one carries`() throws {
        let (carrier, far) = try carried()
        let call = try user.run(
            "doctor --json \(byAddress) --peer Hare --timeout 30s --through \(carrier.address)", status: 1)
        #expect(call.verdict("peer.through") == "pass" && call.verdict("peer.common") == "pass")
        #expect(call.verdict("peer.address") == "fail")
        for (id, words) in [("peer.through", "over tcp"), ("peer.carried", "carries connections")] {
            #expect(call.check(id)["finding"].string?.contains(words) == true, "\(call)")
        }
        try carrier.end()
        try far.end()
    }
}

@Suite("A map of peers") struct PeerMapTests {
    private static let ids = (1...70).map { Identity.ephemeral(seed: $0).peerID }

    /// A complete mesh over tcp, in which this session is the first peer.
    private static func mesh(_ count: Int, names: (Int) -> String = { "Peer \($0)" }) -> PeerMap {
        var map = PeerMap()
        for index in 0..<count {
            map.add(PeerMap.Node(id: ids[index], name: names(index), isOwn: index == 0, isMember: true))
        }
        for first in 0..<count {
            for second in 0..<count where first != second {
                map.add(.over(scheme: "tcp", carrier: nil), of: ids[first], with: ids[second])
            }
        }
        map.sort()
        return map
    }

    private func text(_ map: PeerMap) -> [String] {
        PeerMapText(map: map).lines.map { $0.text(colours: false) }
    }

    @Test func `shows each conversation twice in its table, and says over what how many run`() {
        var map = Self.mesh(3)
        map.add(PeerMap.Node(id: Self.ids[3], name: "Far", isFull: true))
        map.add(.over(scheme: "via", carrier: Self.ids[1]), of: Self.ids[0], with: Self.ids[3])
        map.add(.over(scheme: "bluetooth", carrier: nil), of: Self.ids[1], with: Self.ids[3])
        map.sort()
        let lines = text(map)
        #expect(lines[0].hasSuffix("1234"))
        let far = Self.ids[3].short
        #expect(lines[2] == "2  Far     \(far)  v\\b.  full")
        #expect(lines[1].hasSuffix("\\vtt  this session"))
        #expect(
            lines.contains("4 peers, 5 conversations: 3 over tcp, 1 over bluetooth, 1 through another peer"))
        #expect(
            lines.contains {
                $0.contains("Far (\(far))") && $0.hasSuffix("through Peer 1 (\(Self.ids[1].short))")
            })
        #expect(lines.contains("t over tcp   b over bluetooth   v through another peer   . not connected"))
    }

    @Test func `names the members of a mesh that are not connected, but not peers that are in no mesh`() {
        var map = PeerMap()
        for index in 0..<3 {
            map.add(PeerMap.Node(id: Self.ids[index], name: "P\(index)", isMember: index < 2))
        }
        #expect(map.missing == [PeerMap.Pair(Self.ids[1], Self.ids[0])])
        map.add(nil, of: Self.ids[0], with: Self.ids[1])
        #expect(map.missing.isEmpty)
        #expect(text(map).contains { $0.hasPrefix("? over an unknown transport") })
    }

    @Test func `of 64 fits into a hundred columns, and lists no more than twenty exceptions of a sort`() {
        var map = Self.mesh(64)
        #expect(text(map).allSatisfy { $0.utf8.count <= 120 })
        #expect(text(map)[2...65].allSatisfy { Line($0).columns <= 120 })
        for index in 64..<70 { map.add(PeerMap.Node(id: Self.ids[index], name: "Alone", isMember: true)) }
        #expect(map.missing.count > 300)
        #expect(text(map).count < 70 + 3 + 2 + 25)
        #expect(text(map).last?.hasPrefix("and ") == true)
    }

    @Test
    func `takes what either end says of a conversation, and reports what has changed since the last map`() {
        let (a, b, c) = (Self.ids[0], Self.ids[1], Self.ids[2])
        var first = PeerMap()
        for id in [a, b, c] { first.add(PeerMap.Node(id: id, name: id.short)) }
        var second = first
        first.add(nil, of: a, with: b)
        first.add(.over(scheme: "tcp", carrier: nil), of: b, with: a)
        #expect(first.edges[PeerMap.Pair(a, b)]?.path == .over(scheme: "tcp", carrier: nil))
        #expect(first.edges[PeerMap.Pair(a, b)]?.reporters.count == 2)
        first.add(.interrupted, of: b, with: c)
        second.add(.over(scheme: "via", carrier: c), of: a, with: b)
        second.add(nil, of: a, with: c)
        let changes = PeerMapChange.all(from: first, to: second)
        #expect(Set(changes.map(\.kind.rawValue)) == ["connected", "moved", "ended"])
        #expect(changes.map(\.pair) == changes.map(\.pair).sorted())
        let moved = changes.first { $0.kind == .moved }
        #expect(
            moved.map { PeerMapText.line(for: $0, in: second).text(colours: false) }?.hasSuffix(
                "through \(c.short) (\(c.short))") == true)
    }

    @Test(
        "becomes a picture with every peer and every conversation, and with nothing that a name could bring in"
    )
    func picture() throws {
        var map = Self.mesh(64) { $0 == 5 ? "<script>alert('x')</script>" : "Peer \($0)" }
        map.add(PeerMap.Node(id: Self.ids[64], name: "Far", isMember: true))
        map.add(.over(scheme: "via", carrier: Self.ids[1]), of: Self.ids[0], with: Self.ids[64])
        map.add(.over(scheme: "bluetooth", carrier: nil), of: Self.ids[1], with: Self.ids[64])
        map.sort()
        let svg = PeerMapPicture(map: map, madeAt: "now").svg
        #expect(!svg.contains("<script"))
        #expect(svg.matches(of: /data-peer=/).count == 65)
        let counts = svg.matches(of: /data-kind="([a-z]+)" data-count="([0-9]+)"/).map { "\($0.1) \($0.2)" }
        #expect(counts == ["tcp 2016", "bluetooth 1", "via 1", "missing 62"])
        #expect(svg.matches(of: /<path d=/).count == 2_018 + 62 + 4)
        // The most frequent ones are pale, so that the others can be seen.
        #expect(svg.contains(#"class="line a pale" data-kind="tcp""#))
    }
}
