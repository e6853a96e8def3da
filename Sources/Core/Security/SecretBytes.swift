import COpenSSL

/// Bytes that must not outlive their use: a seed, a key file's text. Overwritten when the last reference goes.
///
/// No array and no string ever holds such bytes, since those are copied and freed as the compiler sees fit.
/// `@unchecked Sendable`: filled by the one who made it, before anybody else sees it.
package final class SecretBytes: @unchecked Sendable {
    private let buffer: UnsafeMutableRawBufferPointer

    /// `count` zeroes.
    package init(count: Int) {
        buffer = .allocate(byteCount: count, alignment: 16)
        buffer.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        OPENSSL_cleanse(buffer.baseAddress, buffer.count)
        buffer.deallocate()
    }

    /// How many bytes.
    var count: Int { buffer.count }

    /// Calls `body` with the bytes in place, valid for the time of the call.
    package func withBytes<Result, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(buffer)
    }
}
