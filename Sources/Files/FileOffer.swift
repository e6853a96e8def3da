import NighCore

/// Files that a peer offers. Answer with ``accept(into:)`` or ``decline(because:)``.
public struct FileOffer: Sendable {
    /// The transfer, which waits for the answer.
    public let transfer: FileTransfer
    /// Data that the peer's program has added to the offer: at most 4,096 bytes.
    public let metadata: [UInt8]

    init(_ transfer: FileTransfer, metadata: [UInt8]) {
        self.transfer = transfer
        self.metadata = metadata
    }

    /// The peer that offers the files.
    public var peer: PeerID { transfer.peer }
    /// The files and folders that are offered. A folder stands before its content.
    public var items: [FileItem] { transfer.items }
    /// The number of bytes in all; nil if the peer does not know the size of a file.
    public var totalSize: Int? { transfer.progress.total }

    /// Takes the files into a folder. A file gets its name there once it is whole, verified and on the disk. No
    /// existing file is replaced, and nothing is written outside the folder.
    ///
    /// Fails if the folder does not exist or cannot be written to. If there is too little room, the transfer ends with
    /// that reason.
    @discardableResult
    public func accept(into folder: String) throws(NighError) -> FileTransfer {
        let place: ReceivingFolder
        do throws(FileFailure) {
            place = try ReceivingFolder(folder)
        } catch {
            throw error.error(.receiving, peer: transfer.peerLabel)
        }
        let (items, sender) = (items, transfer.identity)
        accept { FolderStore(place, sender: sender, items: items) }
        return transfer
    }

    /// Takes the files into a store, which is made on the thread of the transfer.
    ///
    /// - Parameters:
    ///   - mostBytes: the most bytes of a file whose size the peer does not know.
    ///   - onResult: gets the result for each item, as soon as it is known, on the thread of the transfer.
    package func accept(
        atMost mostBytes: Int = .max, onResult: FileTransfer.ResultHandler? = nil,
        _ makeStore: @escaping @Sendable () throws(FileFailure) -> any FileStore
    ) {
        transfer.order(.accept(makeStore, atMost: mostBytes, onResult: onResult))
    }

    /// Declines the files. The peer's program gets the reason.
    public func decline(because reason: String = "") {
        transfer.stop(FileFault(.declined, reason.isEmpty ? "the receiver does not want the files" : reason))
    }
}
