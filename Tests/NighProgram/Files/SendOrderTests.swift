import Arguments
import Testing

@testable import nigh

@Suite struct SendOrderTests {
    private func order(
        _ words: String..., to named: [PeerChoice] = [], isRepeated: Bool = false
    ) throws -> SendOrder {
        try SendOrder(words: words, named: named, isRepeated: isRepeated) {
            ["a.txt", "photos", "puma", "192.168.1.7:4000"].contains($0)
        }
    }

    @Test("The first operand is the device unless it is a file")
    func device() throws {
        #expect(try order("lynx", "a.txt", "b.txt").peers == [.named("lynx")])
        #expect(try order("lynx", "a.txt", "b.txt").paths == ["a.txt", "b.txt"])
        #expect(try order("lynx").paths == ["-"])
        #expect(try order("a.txt", "photos").peers == [])
        #expect(try order("a.txt", "photos").paths == ["a.txt", "photos"])
        #expect(try order("-").peers == [] && order("-").paths == ["-"])
    }

    @Test("An address is a device, whatever files there are")
    func address() throws {
        #expect(try order("192.168.1.7:4000", "a.txt").peers.map { "\($0)" } == ["tcp://192.168.1.7:4000"])
    }

    @Test("A file that has the name of a device is sent, and that is said")
    func ambiguous() throws {
        let order = try order("puma", "a.txt")
        #expect(order.peers == [] && order.paths == ["puma", "a.txt"])
        #expect(order.remark?.contains("write --to puma") == true)
        #expect(try self.order("a.txt", "photos").remark == nil)
    }

    @Test("With --to all operands are files, and in a record the first one is the device")
    func named() throws {
        let order = try order("puma", "lynx", to: [.named("hare"), .named("otter")])
        #expect(order.peers == [.named("hare"), .named("otter")] && order.paths == ["puma", "lynx"])
        #expect(try self.order("puma", "a.txt", isRepeated: true).peers == [.named("puma")])
    }

    @Test("At a terminal a mistyped file is not taken for a device; with a pipe, the word is the device")
    func mistyped() throws {
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

    @Test("Nothing to send, and the standard input with files, are mistakes")
    func mistakes() {
        #expect(throws: UsageError.self) { try order() }
        #expect(throws: UsageError.self) { try order("lynx", "a.txt", "-") }
        #expect(throws: UsageError.self) { try order("a.txt", "-") }
    }
}
