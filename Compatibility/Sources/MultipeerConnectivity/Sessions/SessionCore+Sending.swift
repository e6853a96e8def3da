import NighCore

extension SessionCore {
    /// The most bytes that are put together on the stack.
    private static let smallCount = 4_096
    /// The most bytes of an unreliable message. Longer ones are sent reliably.
    private static let unreliableCount = 8_192 - WireMessage.dataHeaderCount

    func send(_ data: Data, to peers: [MCPeerID], _ mode: MCSessionSendDataMode) throws {
        guard !peers.isEmpty else {
            throw MCError(.invalidParameter, "a message needs a peer that it is for")
        }
        guard data.count <= messageLimit else {
            throw MCError(
                .invalidParameter, "the message has \(data.count) bytes, and the limit is \(messageLimit)")
        }
        if peers.count == 1 { return try send(data, to: connected(peers[0]), mode) }
        // If one of them is not connected, nobody gets the message.
        let members = try peers.map { try connected($0) }
        var failure: MCError?
        for member in members {
            do throws(MCError) {
                try send(data, to: member, mode)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    private func connected(_ peer: MCPeerID) throws(MCError) -> Member {
        guard let member = member(peer.known.id) else {
            throw MCError(.notConnected, "\(peer.displayName) is not connected")
        }
        return member
    }

    private func send(_ data: Data, to member: Member, _ mode: MCSessionSendDataMode) throws(MCError) {
        let isUnreliable = mode == .unreliable && data.count <= Self.unreliableCount
        let reliability: Reliability = isUnreliable ? .unordered : .reliable
        let count = WireMessage.dataHeaderCount + data.count
        var failure: NighError?
        if count <= Self.smallCount {
            withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { bytes in
                Self.fill(bytes, member.sessions, data)
                do throws(NighError) {
                    try member.low.trySend(UnsafeRawBufferPointer(bytes), to: member.id, reliability)
                } catch {
                    failure = error
                }
            }
        } else {
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                Self.fill(UnsafeMutableRawBufferPointer(buffer), member.sessions, data)
                initialized = count
            }
            do throws(NighError) {
                try member.low.trySend(ByteSlice(bytes), to: member.id, reliability)
            } catch {
                failure = error
            }
        }
        if let failure { throw MCError(failure) }
    }

    private static func fill(
        _ bytes: UnsafeMutableRawBufferPointer, _ sessions: WireMessage.Sessions, _ data: Data
    ) {
        WireMessage.writeDataHeader(sessions, to: bytes)
        data.withUnsafeBytes {
            UnsafeMutableRawBufferPointer(rebasing: bytes[WireMessage.dataHeaderCount...]).copyMemory(
                from: $0)
        }
    }
}

extension MCError {
    /// Converts an error of Nigh to one of this module.
    init(_ error: NighError) {
        let code: Code =
            switch error.cause {
            case .bufferFull: .unavailable
            case .messageTooLarge, .invalid: .invalidParameter
            case .cancelled, .streamCancelled: .cancelled
            case .timedOut: .timedOut
            case .unsupported: .unsupported
            case .unavailable, .limit, .full, .busy, .system: .unavailable
            default: .notConnected
            }
        self.init(code, "\(error)")
    }
}
