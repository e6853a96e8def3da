import NighCore
import NighIntroductions
import Testing

@testable import nigh

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

    @Test("shows each conversation twice in its table, and says over what how many run")
    func table() {
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

    @Test("names the members of a mesh that are not connected, but not peers that are in no mesh")
    func missing() {
        var map = PeerMap()
        for index in 0..<3 {
            map.add(PeerMap.Node(id: Self.ids[index], name: "P\(index)", isMember: index < 2))
        }
        #expect(map.missing == [PeerMap.Pair(Self.ids[1], Self.ids[0])])
        map.add(nil, of: Self.ids[0], with: Self.ids[1])
        #expect(map.missing.isEmpty)
        #expect(text(map).contains { $0.hasPrefix("? over an unknown transport") })
    }

    @Test("of 64 fits into a hundred columns, and lists no more than twenty exceptions of a sort")
    func large() {
        var map = Self.mesh(64)
        #expect(text(map).allSatisfy { $0.utf8.count <= 120 })
        #expect(text(map)[2...65].allSatisfy { Line($0).columns <= 120 })
        for index in 64..<70 { map.add(PeerMap.Node(id: Self.ids[index], name: "Alone", isMember: true)) }
        #expect(map.missing.count > 300)
        #expect(text(map).count < 70 + 3 + 2 + 25)
        #expect(text(map).last?.hasPrefix("and ") == true)
    }

    @Test("takes what either end says of a conversation, and reports what has changed since the last map")
    func changes() {
        let (a, b, c) = (Self.ids[0], Self.ids[1], Self.ids[2])
        var first = PeerMap()
        for id in [a, b, c] { first.add(PeerMap.Node(id: id, name: id.short)) }
        var second = first
        first.add(nil, of: a, with: b)
        first.add(.over(scheme: "tcp", carrier: nil), of: b, with: a)
        #expect(first.edges[PeerMap.Pair(a, b)]?.path == .over(scheme: "tcp", carrier: nil))
        #expect(first.edges[PeerMap.Pair(a, b)]?.tellers.count == 2)
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
