import Testing

@testable import NighCore

@Suite("The unsent frames of a stream") struct StreamFrameQueueTests {
    @Test("are gone once they are dropped, and others follow")
    func dropping() {
        var queue = StreamFrameQueue(number: 1, frameRoom: 1_000, chunks: PeerPort.makeChunks())
        func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { queue.append($0) } }
        append([UInt8](repeating: 1, count: 2_500))
        queue.removeAll()
        let nothing = queue.takeFirst()
        #expect(nothing == nil && queue.byteCount == 0)
        append([7])
        let next = queue.takeFirst()
        #expect(next?.count == 1 && next?.frame.bytes.last == 7)
    }
}
