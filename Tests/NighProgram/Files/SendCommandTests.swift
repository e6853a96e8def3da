import Arguments
import NighCore
import Testing

@testable import NighFiles
@testable import nigh

@Suite struct SendOrderTests {
    private func order(
        _ words: String..., to named: [PeerChoice] = [], isRepeated: Bool = false
    ) throws -> SendOrder {
        try SendOrder(words: words, named: named, isRepeated: isRepeated) {
            ["a.txt", "photos", "puma", "192.168.1.7:4000"].contains($0)
        }
    }

    @Test func `The first operand is the device unless it is a file`() throws {
        #expect(try order("lynx", "a.txt", "b.txt").peers == [.named("lynx")])
        #expect(try order("lynx", "a.txt", "b.txt").paths == ["a.txt", "b.txt"])
        #expect(try order("lynx").paths == ["-"])
        #expect(try order("a.txt", "photos").peers == [])
        #expect(try order("a.txt", "photos").paths == ["a.txt", "photos"])
        #expect(try order("-").peers == [] && order("-").paths == ["-"])
    }

    @Test func `An address is a device, whatever files there are`() throws {
        #expect(try order("192.168.1.7:4000", "a.txt").peers.map { "\($0)" } == ["tcp://192.168.1.7:4000"])
    }

    @Test func `A file that has the name of a device is sent, and that is said`() throws {
        let order = try order("puma", "a.txt")
        #expect(order.peers == [] && order.paths == ["puma", "a.txt"])
        #expect(order.remark?.contains("write --to puma") == true)
        #expect(try self.order("a.txt", "photos").remark == nil)
    }

    @Test func `With --to all operands are files, and in a record the first one is the device`() throws {
        let order = try order("puma", "lynx", to: [.named("hare"), .named("otter")])
        #expect(order.peers == [.named("hare"), .named("otter")] && order.paths == ["puma", "lynx"])
        #expect(try self.order("puma", "a.txt", isRepeated: true).peers == [.named("puma")])
    }

    @Test
    func `At a terminal a mistyped file is not taken for a device; with a pipe, the word is the device`()
        throws
    {
        for word in ["holidy.mov", "./puma2", "fotos/a"] {
            #expect(throws: UsageError.self, "\(word)") {
                try SendOrder(words: [word], named: [], readsTerminal: true) { _ in false }
            }
            let piped = try SendOrder(words: [word], named: []) { _ in false }
            #expect(piped.peers == [.named(word)])
        }
        let device = try SendOrder(words: ["Anna's laptop"], named: [], readsTerminal: true) { _ in false }
        #expect(device.peers == [.named("Anna's laptop")])
    }

    @Test func `Nothing to send, and the standard input with files, are mistakes`() {
        #expect(throws: UsageError.self) { try order() }
        #expect(throws: UsageError.self) { try order("lynx", "a.txt", "-") }
        #expect(throws: UsageError.self) { try order("a.txt", "-") }
    }
}

/// Tests when `nigh send` gives up.
@Suite struct SendPatienceTests {
    private func time(_ seconds: Int64) -> Moment { Moment(nanoseconds: seconds * 1_000_000_000) }

    private func progress(_ state: FileProgress.State, done: Int = 0) -> FileProgress {
        FileProgress(
            state: state, done: done, total: 100, resumed: 0, transferred: done, itemsDone: 0,
            itemsFailed: 0, itemCount: 1, current: nil, bytesPerSecond: nil)
    }

    /// The second at which a send gives up after `progress` at second 0, if it does within two hours.
    private func end(
        _ chosen: Duration?, _ progress: FileProgress, canBeRepeated: Bool = true, lostAt: Int64? = nil
    ) -> Int64? {
        var patience = SendPatience(chosen, canBeRepeated: canBeRepeated, at: time(0))
        patience.note(progress, at: time(0))
        return (0...7_200).first { second in
            if second == lostAt { patience.lostLink(at: time(second)) }
            return patience.exceeded(at: time(second)) != nil
        }
    }

    @Test func `The time that the user chose holds at any time, also once the receiver has accepted`() {
        #expect(end(.seconds(4), progress(.waiting)) == 4)
        #expect(end(.seconds(4), progress(.transferring, done: 10)) == 4)
        #expect(end(.seconds(4), progress(.transferring, done: 10), lostAt: 2) == 4)
        #expect(end(.seconds(3_600), progress(.transferring, done: 10)) == 3_600)
    }

    @Test func `By default, a receiver has a minute to accept, and ten for what it was sent`() {
        #expect(end(nil, progress(.waiting)) == 60)
        #expect(end(nil, progress(.transferring, done: 10)) == 600)
        #expect(end(nil, progress(.transferring, done: 10), lostAt: 100) == 160)
        #expect(end(nil, progress(.transferring, done: 10), lostAt: 590) == 600)
    }

    @Test func `A side that has paused, and a program that writes into a pipe, may take any time`() {
        #expect(end(.seconds(4), progress(.paused(isHere: false, reason: "the disk is full"))) == nil)
        #expect(end(.seconds(4), progress(.transferring, done: 10), canBeRepeated: false) == nil)
        #expect(end(.seconds(4), progress(.waiting), canBeRepeated: false) == 4)
    }

    @Test func `Whatever moves begins the time anew`() {
        var patience = SendPatience(.seconds(4), canBeRepeated: true, at: time(0))
        for second: Int64 in 0..<100 {
            patience.note(progress(.transferring, done: Int(second)), at: time(second * 3))
            #expect(patience.exceeded(at: time(second * 3 + 3)) == nil)
        }
        patience.note(progress(.transferring, done: 99), at: time(300))
        #expect(patience.exceeded(at: time(301)) == .seconds(4))
    }
}

/// Tests how transfers are described to a person.
@Suite struct TransferTextTests {
    @Test(
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (1_023, "1023 bytes"), (1_024, "1.0 KiB"), (1_500_000, "1.4 MiB"),
            (1 << 30, "1.0 GiB"), ((1 << 30) - 1, "1.0 GiB"), (500 << 20, "500 MiB"),
        ] as [(Int, String)])
    func `Numbers of bytes have readable units`(_ count: Int, _ words: String) {
        #expect(ByteCount(count).description == words)
    }

    @Test func `Files and folders are counted in words, and a single one is named`() {
        let folder = FileItem(.folder, path: "photos", size: 0)
        let file = FileItem(path: "photos/a", size: 1)
        #expect(TransferText.label([folder]) == "photos/")
        #expect(TransferText.label([FileItem(path: "a", size: 1)]) == "a")
        #expect(TransferText.label([folder, file]) == "1 file and 1 folder")
        #expect(TransferText.count([file, file]) == "2 files")
        #expect(TransferText.names([folder, file]) == ["photos/"])
    }

    @Test func `A question names the sender first, and no name of a file can imitate it or hide its end`() {
        let imitation = FileItem(path: "a\" (1 byte)? [y|n] \n\u{202E}Accept from Mum: \"b", size: 2_048)
        #expect(
            TransferText.question([imitation], size: 2_048, from: "Lynx (abcd)")
                == "Accept from Lynx (abcd): \"a_ (1 byte)? [y|n] __Accept from Mum: _b\" (2.0 KiB)? [y/n] ")
        let nested = [FileItem(path: "a/b", size: 1), FileItem(path: "a/c", size: 1)]
        #expect(TransferText.question([nested[0]], size: 1, from: "L").contains("\"a/b\" (1 byte)"))
        #expect(
            TransferText.question(nested, size: 2, from: "L").contains("2 files (2 bytes in all): \"a/\"?"))
        let long = FileItem(path: String(repeating: "x", count: 4_096), size: nil)
        let question = TransferText.question([long], size: nil, from: "Lynx (abcd)")
        #expect(question.count < 100 && question.hasSuffix("x…\" (of unknown size)? [y/n] "))
        let wide = TransferText.question(
            (0..<100).map { FileItem(path: "\($0)" + String(repeating: "字", count: 1_000), size: 1) },
            size: 100,
            from: "Lynx (abcd)")
        #expect(wide.hasPrefix("Accept from Lynx (abcd): 100 files (100 bytes in all): \"0字"))
        #expect(wide.hasSuffix("字…\", …? [y/n] ") && wide.count < 160)
    }

    @Test func `A record of a transfer keeps every name, whatever is in it`() throws {
        var content = SavedTransfer.Content(
            // A mark that joins the character before it, and ends of lines that are none in the record.
            names: [
                "a b", "line\nend", "back\\n", "\u{301}mark", "Icon\r", "two\r\nlines", "next\u{85}line",
            ],
            total: 7, arguments: ["--", "/x\n"])
        content.peerName = "\u{FE0F}Puma \\"
        content.done = 3
        let read = try #require(SavedTransfer.Content(content.text))
        #expect(read.names == content.names && read.arguments == content.arguments)
        #expect(read.peerName == content.peerName && read.done == 3 && read.total == 7)
        #expect(SavedTransfer.Content("something else") == nil)
    }
}
