// The streams of a conversation, which both sides must have.

extension Conversation {
    /// Returns the table of streams, and creates it if there is none yet; nil if one of the sides has no streams.
    private func openStreams() -> StreamTable? {
        if let streams { return streams }
        guard let streamAgreement else { return nil }
        let table = StreamTable(
            streamAgreement, largeChunks: port.largeChunks, chunks: port.chunks, attention: port)
        table.isReconnecting = link == nil
        table.linkChanged(roundTrip: link?.machine.shortestRoundTrip)
        streams = table
        return table
    }

    /// Whether the peer accepts streams for a purpose, also before there was one.
    func peerAccepts(_ purpose: StreamPurpose) -> Bool { streamAgreement?.theirs.accept(purpose) ?? false }

    /// Opens a stream.
    func openStream(named name: String, for purpose: StreamPurpose) throws(NighError) -> StreamPort {
        guard let streams = openStreams() else { throw StreamTable.unsupported(purpose, by: port.label) }
        return try streams.open(named: name, for: purpose)
    }

    /// Takes the next bytes of a stream. `retain` returns a slice of the bytes that it is given.
    func receivedStreamData(
        _ frame: FrameDecoder.Frame, now: Moment, retain: (UnsafeRawBufferPointer) -> ByteSlice
    ) throws(WireError) {
        guard let streams else { throw .malformed("bytes of a stream that is not open") }
        try streams.receivedData(frame.bytes, now: now, retain: retain)
        noteReceived(frame.wireBytes, now: now)
    }

    /// Whether tasks wait for bytes of streams that have come.
    var hasReadersToWake: Bool { streams?.hasReadersToWake ?? false }

    /// Resumes the tasks that wait for bytes of streams.
    func wakeReaders() { streams?.wakeReaders() }

    /// Handles a control frame of the peer. Returns the stream if the frame has opened one.
    func receivedStreamControl(
        _ frame: StreamControlFrame, wireBytes: Int, now: Moment
    ) throws(WireError) -> StreamPort? {
        guard let streams = openStreams() else { throw .malformed("a stream, where there are none") }
        let opened = try streams.receivedControl(frame)
        noteReceived(wireBytes, now: now)
        return opened
    }

    /// Lets the streams whose programs have done something take their turns.
    func attendToStreams() {
        while let stream = port.takeAttended() { streams?.attend(to: stream) }
    }
}
