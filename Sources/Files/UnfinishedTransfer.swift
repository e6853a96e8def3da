import NighCore

/// What is left in a folder of a file or folder that was not received completely.
package struct UnfinishedTransfer: Sendable {
    /// The path of the folder `NAME.part` that holds it.
    package let path: String
    /// Who sent it. Only the same sender can continue it.
    package let sender: PeerID
    /// What the sender calls it.
    package let name: String
    /// The number of bytes of files that are not whole yet.
    package let partialBytes: Int
    /// The number of files that are whole and have their names.
    package let keptFiles: Int
    /// When something of it was last written, in nanoseconds since 1970.
    package let lastChange: Int
    /// The name of the folder.
    let part: String
}
