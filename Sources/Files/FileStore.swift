import NighCore

/// The place where the files of one offer are received. Used on one thread, which may block.
package protocol FileStore: AnyObject {
    /// The number of free bytes; nil if that is unknown.
    var room: Int? { get }

    /// The number of bytes of the offer that are already there.
    var present: Int { get throws(FileFailure) }

    /// Finds or creates the place of one item. A folder that was opened stays: the sender learns that it is there.
    func open(_ index: Int) throws(FileFailure) -> StoredItem

    /// Creates a new part for a file that `open` has returned as kept: the sender has another one now.
    func openAnew(_ index: Int) throws(FileFailure) -> any StoredPart

    /// Removes the data that only resuming would have needed, once the sender knows which items are kept. Items that
    /// were not kept stay to be resumed.
    func finish()
}

/// The state of one item at the receiver.
package enum StoredItem {
    /// The folder exists.
    case folder
    /// The whole file was kept in an earlier transfer of the same offer, under this path and with this hash.
    case kept(path: String, hash: [UInt8])
    /// A part of the file, which may be empty.
    case part(any StoredPart)
}

/// A file that is not whole yet.
package protocol StoredPart: AnyObject {
    /// The number of bytes that are there.
    var count: Int { get }

    /// Whether no other program can have changed the written bytes. Must be read from time to time: another program
    /// that opens the file waits for that.
    var isUntouched: Bool { get }

    /// Reads bytes that begin at `offset`. Returns how many; fewer than there is room for only at the end.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileFailure) -> Int

    /// Writes bytes that begin at `offset`, which is at most `count`.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(FileFailure)

    /// Drops all bytes from offset `count` on.
    func truncate(to count: Int) throws(FileFailure)

    /// Gives the whole file, which has this hash, its name, once it is on the disk. Returns its path; nil if it has
    /// none.
    func keep(_ hash: [UInt8]) throws(FileFailure) -> String?

    /// Drops the part.
    func discard()

    /// Whether a file is there under the name of this one, with the same size.
    func mayBeThere() -> Bool

    /// Compares the next bytes of those files with a hash.
    func compareNext(with hash: [UInt8]) throws(FileFailure) -> Comparison
}

/// The result of comparing files that are there with the hash of the one that is offered.
package enum Comparison {
    /// More bytes have to be read.
    case undecided
    /// None of the files is the same.
    case other
    /// One of the files is the same. The part was dropped in its favour.
    case same(path: String?)
}

extension StoredPart {
    package func mayBeThere() -> Bool { false }

    package func compareNext(with hash: [UInt8]) throws(FileFailure) -> Comparison { .other }
}
