import NighCore

// Why a stream or a resource has ended, as both sides say it.
extension MCError {
    /// The session has ended with the peer.
    static let gone = MCError(.notConnected, goneReason)
    /// This side has given the transfer up.
    static let cancelledHere = MCError(.cancelled, "this side has cancelled it")
    /// The other side has given the transfer up.
    static let cancelledThere = MCError(.cancelled, "the other side has cancelled it")

    /// The reason that the other side gets for `gone`.
    static let goneReason = "the peer is no longer connected"

    /// Returns the reason that the other side gets for a transfer that ends with this error.
    static func reason(for error: any Error) -> String {
        MCError.notConnected ~= error ? goneReason : "cancelled"
    }

    /// Why a transfer has ended, from the error of its stream.
    init(ofTransfer error: NighError) {
        switch error.cause {
        case .streamCancelled(Self.goneReason): self = .gone
        case .streamCancelled: self = .cancelledThere
        case .limit: self.init(.unavailable, "\(error)")
        default: self.init(.notConnected, "\(error)")
        }
    }
}
