/// The readers of a list that changes. Each gets the list as it is now, and again after each change; a slow one gets
/// the newest list only.
package struct ListReaders<Element: Sendable> {
    private var readers: [Int: AsyncStream<[Element]>.Continuation] = [:]
    private var lastNumber = 0

    package init() {}

    package var isEmpty: Bool { readers.isEmpty }

    /// Adds a reader. `onEnd` is called with its number once it reads no more, and has to remove it.
    package mutating func add(
        _ list: [Element], onEnd: @escaping @Sendable (Int) -> Void
    ) -> AsyncStream<[Element]> {
        lastNumber += 1
        let (stream, continuation) = AsyncStream.makeStream(
            of: [Element].self, bufferingPolicy: .bufferingNewest(1))
        continuation.onTermination = { [number = lastNumber] _ in onEnd(number) }
        continuation.yield(list)
        readers[lastNumber] = continuation
        return stream
    }

    package mutating func remove(_ number: Int) { readers[number] = nil }

    package func yield(_ list: [Element]) {
        for reader in readers.values { reader.yield(list) }
    }

    /// Ends all sequences. This calls each `onEnd`, so the caller must hold no lock that it takes.
    package func finish() {
        for reader in readers.values { reader.finish() }
    }

    /// Returns a sequence of one list, for a reader that comes too late.
    package static func only(_ list: [Element]) -> AsyncStream<[Element]> {
        AsyncStream { continuation in
            continuation.yield(list)
            continuation.finish()
        }
    }
}
