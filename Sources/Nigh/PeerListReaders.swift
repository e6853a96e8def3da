/// The readers of a list of peers that changes. Each gets the list as it is now, and again after each change; a slow
/// one gets the newest list only.
struct PeerListReaders {
    private var readers: [Int: AsyncStream<[Peer]>.Continuation] = [:]
    private var lastNumber = 0

    var isEmpty: Bool { readers.isEmpty }

    /// Adds a reader. `onEnd` is called with its number once it reads no more, and has to remove it.
    mutating func add(
        _ list: [Peer], onEnd: @escaping @Sendable (Int) -> Void
    ) -> AsyncStream<[Peer]> {
        lastNumber += 1
        let (stream, continuation) = AsyncStream.makeStream(
            of: [Peer].self, bufferingPolicy: .bufferingNewest(1))
        continuation.onTermination = { [number = lastNumber] _ in onEnd(number) }
        continuation.yield(list)
        readers[lastNumber] = continuation
        return stream
    }

    mutating func remove(_ number: Int) { readers[number] = nil }

    func yield(_ list: [Peer]) {
        for reader in readers.values { reader.yield(list) }
    }

    /// Ends all sequences. This calls each `onEnd`, so the caller must hold no lock that it takes.
    func finish() {
        for reader in readers.values { reader.finish() }
    }

    /// Returns a sequence of one list, for a reader that comes too late.
    static func only(_ list: [Peer]) -> AsyncStream<[Peer]> {
        AsyncStream { continuation in
            continuation.yield(list)
            continuation.finish()
        }
    }
}
