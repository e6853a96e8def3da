import Testing

@testable import NighCore

@Suite struct ByteSliceTests {
    @Test func aSliceHoldsTheBytesItWasMadeOf() {
        #expect(ByteSlice([1, 2, 3]).bytes == [1, 2, 3])
        #expect(ByteSlice([UInt8]()).bytes == [])
        #expect(ByteSlice([UInt8]()).isEmpty)
        #expect(ByteSlice("héllo".utf8).bytes == Array("héllo".utf8))
        #expect(ByteSlice([9, 8, 7].lazy.map { $0 + 1 }).bytes == [10, 9, 8], "also of what lies nowhere")
    }

    @Test func partsShareTheChunkAndCopiesDoNot() {
        let whole = ByteSlice(Array(0..<10))
        let part = whole[2..<6]
        #expect(part.bytes == [2, 3, 4, 5])
        #expect(part[1..<3].bytes == [3, 4], "ranges count from the part's own start")
        #expect(part[4..<4].isEmpty)
        #expect(part.chunk === whole.chunk)
        let copy = part.copy()
        #expect(copy == part && copy.chunk !== whole.chunk)
        #expect(copy.chunk.capacity == 4, "a copy keeps no large chunk in memory")
    }

    @Test func slicesWithEqualBytesAreEqual() {
        #expect(ByteSlice([1, 2]) == ByteSlice([0, 1, 2])[1..<3])
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 3]))
        #expect(ByteSlice([1, 2]) != ByteSlice([1, 2, 3]))
    }

    @Test func onlyAdjacentSlicesOfOneChunkAreJoined() {
        let whole = ByteSlice(Array(0..<10))
        #expect(whole[0..<3].joined(with: whole[3..<7])?.bytes == [0, 1, 2, 3, 4, 5, 6])
        #expect(whole[0..<3].joined(with: whole[4..<7]) == nil, "a gap")
        #expect(whole[3..<7].joined(with: whole[0..<3]) == nil, "the wrong way round")
        #expect(whole[0..<3].joined(with: ByteSlice([3, 4])) == nil, "another chunk")
    }

    @Test func aThrownErrorKeepsItsType() {
        struct Fault: Error, Equatable {}
        #expect(throws: Fault()) { try ByteSlice([1]).withUnsafeBytes { _ throws(Fault) in throw Fault() } }
    }
}
