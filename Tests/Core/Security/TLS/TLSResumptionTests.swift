import COpenSSL
import Testing

@testable import NighCore

@Suite struct TLSResumptionTests {
    private let dialler: TLSContext
    private let accepter: TLSContext
    private var accepterID: PeerID { ChannelPair.accepter.peerID }

    init() throws {
        dialler = try TLSContext(ChannelPair.dialler)
        accepter = try TLSContext(ChannelPair.accepter)
    }

    private func ticket() throws -> ResumptionTicket {
        let pair = ChannelPair(dialler, accepter)
        try pair.shakeHands()
        #expect(pair.dialling.takeTicket() == nil, "it costs the server time, which it takes later")
        try pair.sendTicket()
        #expect(pair.accepting.takeTicket() == nil)
        let ticket = try #require(pair.dialling.takeTicket())
        #expect(pair.dialling.takeTicket() == nil, "given once")
        #expect(ticket.peer == accepterID)
        return ticket
    }

    private func dial(
        _ accepter: TLSContext, _ ticket: ResumptionTicket?, expected: PeerID?
    ) throws -> ChannelPair {
        let pair = ChannelPair(dialler, accepter, expected: expected, ticket: ticket)
        try pair.shakeHands()
        #expect(pair.dialling.isEstablished && pair.accepting.isEstablished)
        #expect(pair.dialling.provenPeer == accepter.peerID)
        #expect(pair.accepting.provenPeer == dialler.peerID)
        #expect(pair.dialling.wasResumed == pair.accepting.wasResumed)
        #expect(try pair.send([[1]]) == [1])
        return pair
    }

    @Test func `A ticket shortens the next handshake and proves the same peers`() throws {
        let full = try dial(accepter, nil, expected: accepterID)
        let short = try dial(accepter, ticket(), expected: accepterID)
        #expect(!full.dialling.wasResumed && short.dialling.wasResumed)
        #expect(short.fromAccepting.count < full.fromAccepting.count)
        // And so on: each link gives the ticket for the next one.
        try short.sendTicket()
        let next = try dial(accepter, short.dialling.takeTicket(), expected: accepterID)
        #expect(next.dialling.wasResumed)
    }

    @Test func `A ticket outlives a link that broke`() throws {
        var pair: ChannelPair? = ChannelPair(dialler, accepter)
        try pair?.shakeHands()
        try pair?.sendTicket()
        let ticket = pair?.dialling.takeTicket()
        #expect(throws: NighError.self) {
            var queue = ByteQueue()
            try pair?.dialling.receive(
                ByteSlice([UInt8](repeating: 7, count: 50)), plain: &queue, wire: &pair!.toAccepting)
        }
        pair = nil
        #expect(try dial(accepter, ticket, expected: accepterID).dialling.wasResumed)
    }

    @Test func `A ticket is valid once`() throws {
        let ticket = try ticket()
        let copy = ticket
        #expect(try dial(accepter, ticket, expected: accepterID).dialling.wasResumed)
        #expect(try !dial(accepter, copy, expected: accepterID).dialling.wasResumed)
    }

    @Test func `A ticket of another peer is never used`() throws {
        let third = try TLSContext(.ephemeral(seed: 3))
        let ticket = try ticket()
        #expect(try !dial(third, ticket, expected: third.peerID).dialling.wasResumed)
        #expect(try !dial(accepter, ticket, expected: nil).dialling.wasResumed)
        #expect(try dial(accepter, ticket, expected: accepterID).dialling.wasResumed, "it is still there")
    }

    @Test func `The dialled peer is checked after a resumption too`() throws {
        let session = try #require(try ticket().take())
        let other = Identity.ephemeral(seed: 3).peerID
        let mislabelled = ResumptionTicket(owning: session, peer: other)
        let pair = ChannelPair(dialler, accepter, expected: other, ticket: mislabelled)
        let error = #expect(throws: NighError.self) { try pair.shakeHands() }
        #expect(error?.cause == .wrongPeer(expected: other, found: accepterID))
        #expect(!pair.dialling.isEstablished && pair.dialling.provenPeer == nil)
    }

    @Test func `An unknown or old ticket means a full handshake`() throws {
        let restarted = try TLSContext(ChannelPair.accepter)
        #expect(try !dial(restarted, ticket(), expected: accepterID).dialling.wasResumed)
        let session = try #require(try ticket().take())
        SSL_SESSION_set_time(session, SSL_SESSION_get_time(session) - TLSContext.ticketLifetime - 5)
        let old = ResumptionTicket(owning: session, peer: accepterID)
        #expect(try !dial(accepter, old, expected: accepterID).dialling.wasResumed)
        // The server refuses old tickets itself.
        SSL_CTX_set_timeout(accepter.pointer, -10)
        #expect(try !dial(accepter, ticket(), expected: accepterID).dialling.wasResumed)
    }

    @Test func `Tickets of old keys mean a full handshake`() throws {
        let ticket = try ticket()
        let another = try self.ticket()
        accepter.rotateTicketKeys()
        #expect(try dial(accepter, ticket, expected: accepterID).dialling.wasResumed)
        accepter.rotateTicketKeys(now: 1 << 40)
        #expect(try !dial(accepter, another, expected: accepterID).dialling.wasResumed)
        #expect(try dial(accepter, self.ticket(), expected: accepterID).dialling.wasResumed)
    }

    @Test func `No early data is ever offered`() throws {
        let session = try #require(try ticket().take())
        defer { SSL_SESSION_free(session) }
        #expect(SSL_SESSION_get_max_early_data(session) == 0)
        #expect(SSL_SESSION_get_ticket_lifetime_hint(session) == UInt(TLSContext.ticketLifetime))
    }
}
