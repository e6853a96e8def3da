import NighCore

/// The files and folders that are sent in one offer. Used on one thread, which may block.
package protocol FileSource: AnyObject {
    /// What is offered. A folder stands before what is in it.
    var items: [FileItem] { get }

    /// Opens a file, so that it can be read. Fails if it is no longer the file that was offered. What can be read only
    /// once is the same open file each time.
    func open(_ index: Int) throws(FileFailure) -> any SourceFile
}

/// An open file that is being sent.
package protocol SourceFile: AnyObject {
    /// Whether any part of the file can be read at any time. What comes from a pipe can be read only once, in order.
    var isSeekable: Bool { get }

    /// Reads bytes that begin at `offset`. Returns how many, 0 at the end. Of a file that is seekable, fewer than there
    /// is room for only at the end. Of any other, what is there, once something is; `offset` must be what was read so
    /// far.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int

    /// Fails if the file has changed since it was offered, `count` being the bytes that were read of it. Of a file that
    /// is not seekable, nothing can be said.
    func checkUnchanged(_ count: Int) throws(FileFailure)

    /// What a read would wait for; nil if it returns at once.
    var awaited: AwaitedInput? { get }
}

extension SourceFile {
    /// Nothing: a file on a disk is read at once.
    package var awaited: AwaitedInput? { nil }
}

/// A pipe in which there is nothing to read yet.
package struct AwaitedInput: Sendable {
    /// What becomes readable.
    package let file: OpenDescriptor
    /// The time after which a read no longer waits; nil if it waits without end.
    package let timeout: Duration?

    package init(_ file: OpenDescriptor, timeout: Duration?) {
        self.file = file
        self.timeout = timeout
    }
}
