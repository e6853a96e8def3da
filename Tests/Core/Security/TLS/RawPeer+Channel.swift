import NighTestKit

@testable import NighCore

extension RawPeer {
    /// Performs a handshake with `channel` and exchanges what both send; returns the error that ended the channel, if
    /// any.
    func meet(_ channel: TLSChannel) -> NighError? {
        var wire = ByteQueue()
        var plain = ByteQueue()
        var error: NighError?
        do throws(NighError) {
            try channel.begin(wire: &wire)
            var answer = exchange(wire.bytes)
            for _ in 0..<10 {
                wire.removeAll()
                if !answer.isEmpty { try channel.receive(ByteSlice(answer), plain: &plain, wire: &wire) }
                answer = exchange(wire.bytes)
                if answer.isEmpty, wire.isEmpty { break }
            }
        } catch let failure {
            error = failure
            _ = exchange(wire.bytes)
        }
        return error
    }
}
