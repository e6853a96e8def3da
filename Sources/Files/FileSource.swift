import NighCore

/// The files and folders that are sent in one offer. Used on one thread, which may block.
package protocol FileSource: AnyObject {
    /// The files and folders that are offered. A folder stands before its content.
    var items: [FileItem] { get }

    /// Opens a file, so that it can be read. Fails if it is no longer the file that was offered. A file that can be
    /// read only once is the same open file each time.
    func open(_ index: Int) throws(FileFailure) -> any SourceFile
}

/// An open file that is being sent.
package protocol SourceFile: AnyObject {
    /// Whether any part of the file can be read at any time. The content of a pipe can be read only once, in order.
    var isSeekable: Bool { get }

    /// Reads bytes that begin at `offset`. Returns how many, 0 at the end. A seekable file returns fewer than there is
    /// room for only at the end. Any other waits for bytes and returns those that are there; its `offset` must be the
    /// number of bytes that were read so far.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int

    /// Fails if the file has changed since it was offered, `count` being the bytes that were read of it. Of a file that
    /// is not seekable, nothing can be said.
    func checkUnchanged(_ count: Int) throws(FileFailure)

    /// The pipe that a read would wait for; nil if it returns at once.
    var awaited: AwaitedInput? { get }
}

extension SourceFile {
    /// Nothing: a file on a disk is read at once.
    package var awaited: AwaitedInput? { nil }
}

/// A pipe in which there is nothing to read yet.
package struct AwaitedInput: Sendable {
    /// The end of the pipe that becomes readable.
    package let file: OpenDescriptor
    /// The time after which a read no longer waits; nil if it waits without end.
    package let timeout: Duration?

    package init(_ file: OpenDescriptor, timeout: Duration?) {
        self.file = file
        self.timeout = timeout
    }
}
