import COpenSSL

/// Bytes that are overwritten when their last reference is released: a seed, or the text of a key file.
///
/// Such bytes are never in an array or a string, because the compiler may copy and free those at any time.
/// `@unchecked Sendable`: only the creator writes the bytes, before anybody else has a reference.
package final class SecretBytes: @unchecked Sendable {
    private let buffer: UnsafeMutableRawBufferPointer

    /// Creates `count` zero bytes.
    package init(count: Int) {
        buffer = .allocate(byteCount: count, alignment: 16)
        buffer.initializeMemory(as: UInt8.self, repeating: 0)
    }

    /// Creates a copy of bytes that are in an array, because they are no secret or only for a test.
    package convenience init(copying bytes: [UInt8]) {
        self.init(count: bytes.count)
        buffer.copyBytes(from: bytes)
    }

    /// Returns bytes from libcrypto's private random numbers.
    package static func random(count: Int) -> SecretBytes {
        OpenSSLLifetime.extend()
        let bytes = SecretBytes(count: count)
        let done = RAND_priv_bytes(bytes.buffer.bindMemory(to: UInt8.self).baseAddress, Int32(count))
        precondition(done == 1, "libcrypto has no randomness")
        return bytes
    }

    deinit {
        OPENSSL_cleanse(buffer.baseAddress, buffer.count)
        buffer.deallocate()
    }

    /// The number of bytes.
    package var count: Int { buffer.count }

    /// The first half of the bytes, and the rest.
    package var halves: (SecretBytes, SecretBytes) {
        let middle = count / 2
        let (first, second) = (SecretBytes(count: middle), SecretBytes(count: count - middle))
        first.withBytes { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<middle])) }
        second.withBytes { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[middle...])) }
        return (first, second)
    }

    /// Calls `body` with the bytes in place. They are valid during the call.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(buffer)
    }
}
