import NighCore

/// A file or folder that was not received completely, and that can be continued.
package struct UnfinishedTransfer: Sendable {
    /// The path of the folder `NAME.part` that holds it.
    package let path: String
    /// The peer that sent it. Only the same sender can continue it.
    package let sender: PeerID
    /// The sender's name for it.
    package let name: String
    /// The number of bytes of files that are not whole yet.
    package let partialBytes: Int
    /// The number of files that are whole and have their names.
    package let keptFiles: Int
    /// The time of the last write, in nanoseconds since 1970.
    package let lastChange: Int
    /// The name of the folder.
    let part: String
}
