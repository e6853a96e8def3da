import NighCore

/// The actors of a program. `Calls` passes on the calls, streams and events for them.
package protocol ActorHost: AnyObject, Sendable {
    /// Answers a call. It runs in a task of its own, which is cancelled when the caller waits no longer. Of the calls
    /// in one stream, each runs up to its first suspension before the next one begins.
    func answer(_ call: ActorCall) async -> CallOutcome

    /// Takes a stream that a peer has opened for something else than calls. Loop only.
    func receive(_ stream: ByteStream)

    /// Handles an event of the session. Loop only.
    func handle(_ event: SessionEvent)

    /// The session has closed. Nothing is called afterwards.
    func sessionDidClose()
}

/// A call that a peer makes to an actor.
package struct ActorCall: Sendable {
    /// The name of the stream, which says which actor is called.
    package let actor: String
    package let method: String
    package let arguments: ByteSlice
    package let peer: Peer
    /// When the caller stops waiting; `.never` if it waits for ever.
    package let deadline: Moment
}

/// The first characters of the names of streams for actors. Each stands for a kind of content.
package enum ActorStream {
    /// The calls to an actor that is published under the rest of the name.
    package static let published: Character = "@"
    /// The calls to an actor whose number is the rest of the name.
    package static let numbered: Character = "#"
    /// The values of a sequence, whose number is the rest of the name.
    package static let values: Character = ">"
    /// The name of the stream in which a side lists its published actors.
    package static let listing = ""

    /// Returns whether an actor can be published under this name. The contract of one has such a name, too.
    package static func isName(_ name: String) -> Bool {
        !name.isEmpty && StreamControl.isName("\(published)\(name)")
    }

    static func carriesCalls(_ name: String) -> Bool { name.first == published || name.first == numbered }
}
