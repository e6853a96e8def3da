import NighTestKit

@testable import NighCore

extension RawPeer {
    /// Shakes hands with `channel` and hands over what both have to say; why the channel gave up, if it did.
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
