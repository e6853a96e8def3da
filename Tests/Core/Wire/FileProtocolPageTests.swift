import NighFiles
import NighTestKit
import Testing

@testable import NighCore

@Suite("The page of the protocol, about files")
struct FileProtocolPageTests {
    private let page: ProtocolPage

    init() throws { page = try ProtocolPage() }

    @Test("has an example that both sides play, byte for byte")
    func example() throws {
        let steps = try page.example(in: "4.6 Files")
        let disk = MemoryDisk()
        let (sender, receiver) = (
            OutgoingFiles(MemoryFiles([("a.txt", Array("hello".utf8))])), IncomingFiles()
        )
        var said: [Bool: [UInt8]] = [:]
        var isMoving = true
        while isMoving {
            isMoving = false
            for (isSender, side, other) in [
                (true, sender as any TransferSide, receiver as any TransferSide), (false, receiver, sender),
            ] {
                if receiver.isDeciding { receiver.accept(into: disk.store(for: receiver.items)) }
                switch side.work() {
                case .send(let bytes):
                    said[isSender, default: []] += bytes
                    other.receive(bytes)
                    isMoving = true
                case .again: isMoving = true
                case .wait, .waitForInput, .waitForRoom, .finish, .over: break
                }
            }
        }
        #expect(disk.files == ["a.txt": Array("hello".utf8)])
        for isSender in [true, false] {
            let expected = try steps.filter { $0.isDialling == isSender }.flatMap { step in
                try #require(step.bytes.exact)
            }
            #expect(said[isSender] == expected)
        }
    }

    @Test("lists the reasons of faults")
    func reasons() throws {
        let rows = try page.table("| reason | name | what it says |", in: "4.6 Files")
        let listed = rows.map { "\($0[0]) \($0[1])" }
        #expect(listed == FileFault.Reason.allCases.map { "\($0.rawValue) \($0)" })
    }
}
