import NighCore

/// A file that is being received: the bytes that are there, and their hash as far as it is known.
final class IncomingPart {
    let index: Int
    let file: any StoredPart
    /// The hash of the first `hashed` bytes.
    let hash = RunningHash()
    private(set) var hashed = 0
    /// The bytes that are there.
    private(set) var count: Int
    /// Whether bytes that are in the hash were written anew or dropped, so that all must be read again.
    private(set) var isHashStale = false
    /// Whether all of it was read once more, after another program may have changed it.
    var isReadAgain = false
    /// The size and hash that the sender has stated.
    var expected: (size: Int, hash: [UInt8])?
    /// Whether the sender was asked for the hash of its file, and has not answered.
    var isCompared = false
    /// How often the written bytes differed from the sent ones.
    var mismatches = 0
    /// How many of the bytes the sender knows to be written.
    var reported = 0

    init(_ index: Int, _ file: any StoredPart) {
        self.index = index
        self.file = file
        count = file.count
    }

    /// Reads the next bytes that are not in the hash yet, and adds them to it. Returns none if the file is shorter than
    /// it was.
    func readNext(into buffer: UnsafeMutableRawBufferPointer) throws(FileFailure) -> UnsafeRawBufferPointer {
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count - hashed))
        let read = try file.read(into: room, at: hashed)
        if read == 0 { count = hashed }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<read])
        hash.update(bytes)
        hashed += read
        return bytes
    }

    /// Begins the hash again.
    func rewind() {
        hash.reset()
        hashed = 0
        isHashStale = false
    }

    /// Writes bytes, at an offset up to `count`. Returns by how much the file has grown.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure) -> Int {
        try file.write(bytes, at: offset)
        if offset == hashed {
            hash.update(bytes)
            hashed += bytes.count
        } else if offset < hashed {
            isHashStale = true
        }
        let growth = max(0, offset + bytes.count - count)
        count += growth
        return growth
    }

    /// Drops all bytes from offset `size` on.
    func shorten(to size: Int) throws(FileFailure) {
        guard count > size else { return }
        try file.truncate(to: size)
        count = size
        isHashStale = isHashStale || hashed > size
    }
}
