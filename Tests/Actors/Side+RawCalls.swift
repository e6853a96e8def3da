import Nigh
import NighCalls
import NighCore

/// The outcome of a call, without its words.
enum RawOutcome: Equatable {
    case answer([UInt8])
    case error
    case refused(CallRefusal)
}

extension Meeting.Side {
    /// Calls what a hostile program may call.
    func call(
        _ name: String, _ arguments: [UInt8] = [], on actor: String, of peer: Peer
    ) async throws -> RawOutcome {
        let calls = session.layer(Calls.self)!
        switch try await calls.call(name, ByteSlice(arguments), at: peer, actor: actor, timeout: .seconds(30))
        {
        case .answer(let bytes): return .answer(bytes.bytes)
        case .error, .unknownName: return .error
        case .refused(let reason, _): return .refused(reason)
        }
    }
}
