/// A transport whose pipes are opened by guests: people with a browser, without a key pair, without encryption.
///
/// A guest has proven to the transport that this session has invited it. The transport derives the guest's PeerID from
/// this proof, so a guest can neither choose one nor take that of somebody else.
package protocol GuestTransport: Transport {
    /// Makes an invitation for one guest, and passes it on as soon as the transport listens and knows the name of this
    /// machine. Passes on nil if it does not listen within some seconds. Called on the loop.
    func makeInvitation(_ done: @escaping @Sendable (GuestInvitation?) -> Void)

    /// Called on the loop when a guest has come in with an invitation, so that nobody else can use that one.
    var onInvitationUsed: (() -> Void)? { get set }

    /// The guests that may come back. Called on the loop.
    var guests: [Guest] { get }

    /// Closes the pipes of a guest, and accepts no more of them. Ignored if there is no such guest. Called on the loop.
    func revoke(_ guest: PeerID)
}

/// A pipe whose other end is a guest.
package protocol GuestPipe: Pipe {
    /// The only PeerID that the other end may have.
    var guest: PeerID { get }
}

/// An invitation for one guest, to show to the person as a QR code.
public struct GuestInvitation: Hashable, Sendable {
    /// The address to open in a browser. It has this machine's name in it, and a token that works once.
    public let url: String
    /// Other addresses for the browser, with IP addresses in place of the name, for networks that do not find it.
    public let alternatives: [String]
    /// How long a guest may begin with it.
    public let validity: Duration

    package init(url: String, alternatives: [String], validity: Duration) {
        self.url = url
        self.alternatives = alternatives
        self.validity = validity
    }
}

/// A guest that was let in, and may come back.
public struct Guest: Hashable, Sendable {
    /// The PeerID that the session has given to the guest.
    public let id: PeerID
    /// Where the guest came from last, for people.
    public let address: String
    /// How long ago it was let in.
    public let age: Duration
    /// Whether it has a pipe now.
    public let isHere: Bool

    package init(id: PeerID, address: String, age: Duration, isHere: Bool) {
        self.id = id
        self.address = address
        self.age = age
        self.isHere = isHere
    }
}
