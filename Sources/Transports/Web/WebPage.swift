import CWeb
import NighCore

/// The files that a `web` transport serves: the page of a program, and `nigh.js`, by which the page talks to it.
public struct WebPage: Sendable {
    /// A file of a page.
    public struct File: Sendable {
        /// The media type of the file, such as `text/html; charset=utf-8`.
        public let type: String
        /// The bytes of the file.
        public let bytes: ByteSlice
        /// The bytes as they are sent to browsers that can read that; nil if they are no shorter.
        let compressed: ByteSlice?

        /// Creates a file.
        public init(type: String, bytes: ByteSlice) {
            self.type = type
            self.bytes = bytes
            compressed = bytes.compressed()
        }
    }

    /// The files by their paths, such as `/style.css`. A browser that opens the address of an invitation gets `/`.
    public let files: [String: File]

    /// Creates a page of these files. `/nigh.js` is added unless they have one of that name.
    public init(_ files: [String: File]) {
        self.files = files.merging([Self.modulePath: Self.module]) { given, _ in given }
    }

    private static let modulePath = "/nigh.js"
    private static let module = File(
        type: "text/javascript; charset=utf-8",
        bytes: ByteSlice(
            copying: UnsafeRawBufferPointer(start: nigh_web_module(), count: nigh_web_module_size())))

    /// The page of a program that has none: it says so.
    static let none = WebPage([
        "/": File(
            type: "text/html; charset=utf-8",
            bytes: ByteSlice(
                Array(
                    """
                    <!doctype html>
                    <html lang="en">
                    <meta charset="utf-8">
                    <meta name="viewport" content="width=device-width">
                    <title>Nigh</title>
                    <p>The program here takes guests, and has no page for them.
                    <p>Guests of its own join with <a href="/nigh.js">nigh.js</a>.

                    """.utf8)))
    ])
}

extension ByteSlice {
    /// Returns the bytes compressed with gzip; nil if they would be no shorter.
    fileprivate func compressed() -> ByteSlice? {
        guard count > 0 else { return nil }
        let result = withUnsafeBytes { bytes in
            [UInt8](unsafeUninitializedCapacity: count) { space, length in
                length = nigh_web_compress(bytes.baseAddress, bytes.count, space.baseAddress, space.count)
            }
        }
        return result.isEmpty ? nil : ByteSlice(result)
    }
}
