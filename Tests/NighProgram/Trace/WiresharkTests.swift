import ChildPrograms
import Foundation
import NighCore
import NighIntroductions
import NighRecord
import Testing

@testable import nigh

/// Tests what Wireshark shows of captures with our dissector, through tshark.
@Suite(.callsPrograms) struct WiresharkTests {
    private let user = NighUser()

    /// The values of these fields, one row per packet.
    private func fields(_ names: String, of path: String, filter: String = "nigh") throws -> [[String]] {
        let script = "\(BuiltPackages.root)/Sources/Tools/wireshark/nigh.lua"
        let tshark = try Child(
            "/usr/bin/tshark",
            [
                "-n", "-X", "lua_script:\(script)", "-r", path, "-Y", filter, "-T", "fields", "-E",
                "occurrence=a",
            ]
                + names.split(separator: " ").flatMap { ["-e", String($0)] },
            environment: ["HOME": user.folder.path])
        let call = try tshark.finish()
        #expect(!call.error.contains("Lua"), "\(call.errors)")
        return call.lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
    }

    /// Makes a capture of a record; returns its path, and what the command says.
    private func capture(of record: String) throws -> (path: String, call: NighCall) {
        let path = "\(user.folder.path)/a.pcapng"
        return (path, try user.run("trace \(record) --pcapng \(path) --json"))
    }

    @Test func `A record of an encrypted conversation becomes a capture in which every frame is dissected`()
        throws
    {
        let record = "\(user.folder.path)/a.nigh"
        try RecordedConversation.record(to: record)
        let (capture, call) = try self.capture(of: record)
        try user.run("trace \(record) --pcapng \(capture)", status: 1)

        let rows = try fields(
            """
            nigh.type nigh.hello.name nigh.hello.service nigh.pong.round_trip nigh.close.code \
            nigh.standing.granted_main frame.interface_name nigh.capture.direction \
            nigh.preface.tls13 _ws.expert.message frame.interface_description nigh.hello.peer
            """, of: capture)
        #expect(rows.count == call.json["packets"].int)
        #expect(rows.allSatisfy { $0[6].hasPrefix("link ") && $0[9] == "" }, "\(rows)")
        #expect(rows.filter { $0[0] == "" }.allSatisfy { $0[8] == "1" || $0[8] == "True" })
        let hellos = rows.filter { $0[0] == "0x01" }
        #expect(Set(hellos.map { $0[1] }) == ["Puma", "Lynx"])
        #expect(hellos.allSatisfy { $0[2] == "nigh" && $0[11].count == 52 })
        let listed = try user.run("trace \(record) --type hello --json-lines").objects
        let ids = listed.compactMap { $0["details"]["peer"].string }
        #expect(Set(ids) == Set(hellos.map { $0[11] }))
        #expect(rows.contains { $0[0] == "0x04" && (Double($0[3]) ?? -1) >= 0 })
        #expect(rows.contains { $0[0] == "0x07" && $0[5] == "1048576" && $0[7] == "1" })
        #expect(rows.contains { $0[0] == "0x02" && $0[4] == "0" && $0[7] == "0" })
        #expect(rows[0][10].contains("accepted over tcp"))
    }

    @Test(arguments: [nil, 0, 7])
    func `Packets beside a link are dissected, whole and with only their beginnings`(headLimit: Int?) throws {
        let record = "\(user.folder.path)/p.nigh"
        try RecordedPackets.write(to: record, headLimit: headLimit)
        let capture = try self.capture(of: record).path
        let rows = try fields(
            """
            nigh.packet.number nigh.packet.kind nigh.packet.connection nigh.packet.token \
            nigh.packet.order nigh.packet.key nigh.packet.fragment.message \
            nigh.packet.fragment.index nigh.packet.fragment.count nigh.packet.report.highest \
            nigh.packet.report.delay nigh.packet.report.received nigh.packet.probe_in nigh.payload \
            _ws.expert.message _ws.col.Info
            """, of: capture)
        let packets = RecordedPackets.sent + RecordedPackets.received
        #expect(rows.map { $0[0] } == packets.map { "\($0.number)" })
        #expect(rows.map { $0[1] } == packets.map { "\($0.content[0])" })
        #expect(rows.map { $0[2] } == packets.indices.map { "0x000000000000000\($0 < 3 ? 1 : 2)" })
        guard headLimit != 0 else {
            return #expect(rows.allSatisfy { $0[14].contains("Only the beginning") })
        }
        // Fragments: the beginning, which 7 bytes behind the kind are, has all that they say.
        #expect(rows[7][6...8] == ["7", "1", "2"], "\(rows[7])")
        #expect(rows[5][4...5] == ["6", "4"] && rows[2][4...5] == ["1", ""], "\(rows)")
        guard headLimit == nil else { return }
        #expect(rows[0][3] == "0x0102030405060708" && rows[1][3] == rows[0][3])
        // The answer that came, in the fifth packet of the capture, is to the probe in the first.
        #expect(rows[4][12] == "1" && rows[1][12] == "")
        #expect(rows[5][13] == "6869" && rows[6][13] == "6162")
        #expect(rows[8][9...11] == ["12", "4096", "11"], "\(rows[8])")
        #expect(rows.map { $0[14] }.enumerated().filter { $0.element != "" }.map(\.offset) == [9, 10])
        #expect(rows[9][14].contains("later version") && rows[10][14].contains("cut short"))
        #expect(rows[6][15].hasSuffix("packet 5, fragment (part 1 of 2 of message 7, 2 bytes, unordered)"))
    }

    @Test func `An unencrypted TCP conversation is reassembled and dissected, also in small pieces`() throws {
        let capture = "\(user.folder.path)/lo.pcapng"
        let nigh = "\(BuiltPrograms.path(of: "nigh")) \(RecordedConversation.trace) --security none"
        // In a network of its own, without other traffic. The capture has begun once its file exists.
        let script = """
            set -e
            ip link set lo up
            cd \(user.folder.path)
            tshark -q -i lo -f tcp -w \(capture) 2>/dev/null & capture=$!
            until [ -s \(capture) ]; do sleep 0.05; done
            \(nigh) -n Puma --accept --json-lines > puma & puma=$!
            until grep -q tcp://127 puma; do sleep 0.05; done
            address=$(grep -o 'tcp://127[.0-9]*:[0-9]*' puma | head -1)
            \(nigh) -n Lynx --connect $address --inject split=40 --json-lines > lynx & lynx=$!
            until grep -q '"frame":"accept"' lynx; do sleep 0.05; done
            kill -INT $lynx; wait $lynx
            until grep -q '"event":"ended"' puma; do sleep 0.05; done
            kill -INT $puma; wait $puma
            until [ $(tshark -n -r \(capture) -Y tcp.flags.fin==1 2>/dev/null | wc -l) -ge 2 ]; do sleep 0.2; done
            kill -INT $capture; wait $capture || true
            """
        try Child.run(
            "/usr/bin/unshare", ["-Urn", "/bin/sh", "-c", script],
            environment: ["XDG_DATA_HOME": user.folder.path, "HOME": user.folder.path])
        let rows = try fields(
            "nigh.type nigh.hello.name nigh.preface.plaintext nigh.close.code _ws.expert.message",
            of: capture, filter: "nigh")
        let types = rows.flatMap { $0[0].split(separator: ",").map(String.init) }
        for type in ["0x01", "0x02", "0x03", "0x04", "0x06", "0x07"] {
            #expect(types.contains(type), "\(rows)")
        }
        #expect(Set(rows.map { $0[1] }).isSuperset(of: ["Puma", "Lynx"]))
        #expect(
            rows.allSatisfy { !$0[4].contains("breaks the protocol") && !$0[4].contains("before") }, "\(rows)"
        )
        #expect(
            try fields(
                "frame.number", of: capture, filter: "_ws.malformed || nigh.violation || _ws.lua.error")
                == [])
    }

    /// A capture of USER0 packets with these frames, as hexadecimal digits.
    private func capture(_ frames: [String]) throws -> String {
        let text = frames.map { frame in
            let digits = Array(("01000100 00000010 0000000000000001" + frame).filter { $0 != " " })
            let bytes = stride(from: 0, to: digits.count, by: 2).map { String(digits[$0..<$0 + 2]) }
            return "000000 \(bytes.joined(separator: " "))\n"
        }
        let capture = "\(user.folder.path)/dump.pcapng"
        let dump = user.folder.file("dump", text.joined())
        try Child.run("/usr/bin/text2pcap", ["-q", "-l", "147", dump, capture])
        return capture
    }

    private func frame(_ type: UInt8, _ payload: [UInt8]) -> String {
        let bytes = [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type] + payload
        return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test func `Nothing is said to be wrong with a frame of which only the beginning was recorded`() throws {
        let hello = "00005001", kind = "00000A16", data = "00000A18"
        let capture = try capture([hello, kind, kind + "01", data, data + "0000", data + "00000001"])
        let rows = try fields("_ws.expert.message _ws.col.Info", of: capture)
        #expect(rows.count == 6)
        for row in rows { #expect(row[0] == "Only the beginning of this was captured", "\(row)") }
        #expect(rows[2][1].contains("kind 1") && rows[5][1].contains("stream 1, 6 bytes"), "\(rows)")
    }

    @Test("Introductions are shown as `nigh trace` shows them, and the peers of relayed pipes by their names")
    func introductions() throws {
        let (puma, hare) = (Identity.ephemeral(seed: 1), Identity.ephemeral(seed: 3).peerID)
        let advertisement = Advertisement(
            service: "chat", peer: hare, name: DisplayName(fitting: "Hare")
        ).bytes
        let count = [0, UInt8(advertisement.count)]
        let address = [1, 22] + Array("tcp://192.168.1.9:4000".utf8)
        let token = IntroductionToken(by: puma, guest: hare, host: hare, nonce: 7, number: 5).bytes
        let hereLength = UInt8(1 + 8 + 2 + advertisement.count + address.count)
        let contents: [[UInt8]] = [
            [1, 0, hereLength, 5] + [UInt8](repeating: 1, count: 8) + count + advertisement + address,
            [2, 0, UInt8(3 + advertisement.count), 3] + count + advertisement,
            [4, 0, 32] + hare.bytes + [99, 0, 1, 7] + [3, 0, 32] + hare.bytes,
            [5, 0, UInt8(32 + address.count + 2 + token.count)] + hare.bytes + address + [0, 112] + token,
            [6, 0, 69] + hare.bytes + [3] + Array("via".utf8) + [1] + puma.peerID.bytes
                + [6, 0, 37] + hare.bytes + [3] + Array("tcp".utf8) + [0] + [6, 0, 34] + hare.bytes + [0, 0],
        ]
        let name = Array("from:\(hare)".utf8)
        let capture = try capture(
            contents.map { frame(0x16, [2] + $0) } + [
                frame(0x81, token), frame(0x19, [0, 0, 0, 1, 6, 2, UInt8(name.count)] + name),
                frame(0x16, [2, 4, 0, 32, 1]), frame(0x16, [2, 6, 0, 34] + hare.bytes + [0, 2]),
            ])
        let rows = try fields(
            """
            _ws.col.Info nigh.introduction.peer nigh.introduction.address nigh.introduction.number \
            nigh.stream.relay_peer _ws.expert.message
            """, of: capture)
        #expect(rows.count == 9)
        var (state, conversations) = (LinkState(), TracedConversations())
        for (row, content) in zip(rows, contents) {
            let payload = [2] + content
            let summary = FrameSummary(
                of: RecordedFrame(
                    direction: .incoming, type: 0x16, length: payload.count, payload: ByteSlice(payload)),
                at: 0, in: &state, &conversations)
            // The dissector leaves out how many addresses there are, and adds the number of bytes.
            let words = summary.text.split(separator: " at ")[0]
            #expect(row[0].contains("(\(words), \(payload.count) bytes)"), "\(row), \(words)")
            #expect(row[1].hasPrefix("\(hare)"), "\(row)")
        }
        #expect(rows[0][2] == "tcp://192.168.1.9:4000" && rows[3][2] == rows[0][2], "\(rows)")
        #expect(rows[3][3] == "5" && rows[5][3] == "5", "\(rows)")
        #expect(rows[5][0].contains("introduction (number 5)"), "\(rows[5])")
        #expect(rows[6][4] == "\(hare)", "\(rows[6])")
        #expect(rows[7][5].contains("cut short"), "\(rows[7])")
        #expect(rows[8][5].contains("whether a path has a carrier"), "\(rows[8])")
        #expect(rows.prefix(7).allSatisfy { !$0[5].contains("cut short") && !$0[5].contains("too many") })
    }

    @Test func `A frame that breaks the protocol is marked`() throws {
        // USER0 packets with invalid frames: before a hello, cut short, of unknown types, a second hello.
        let frames: [(String, String)] = [
            ("0000010300", "a frame before the hello"),
            ("00000503 0102030405", "a ping's token is cut short"),
            ("00000021", "unknown critical frame type 33"), ("0000020200", "This"),
            ("00000014", "a piece without bytes"),
            ("00000412 00000000", "a message of no bytes in pieces"),
            ("00000819 00000001 06 00 01 78", "a stream for the purpose 0"),
        ]
        let capture = try capture(frames.map(\.0))
        let rows = try fields("_ws.expert.message", of: capture)
        #expect(rows.count == frames.count)
        for (row, (frame, words)) in zip(rows, frames) where words != "This" {
            #expect(row[0].contains(words), "\(frame): \(row)")
        }
        #expect(rows[3][0].contains("Only the beginning"), "\(rows[3])")
    }
}
