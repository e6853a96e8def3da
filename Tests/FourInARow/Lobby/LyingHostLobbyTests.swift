import NighCore
import NighMemory
import Testing

@testable import FourInARow

struct LyingHostLobbyTests {
    @Test("A player who asked to watch is not made to play, and the reverse", arguments: TableWish.allCases)
    func otherPlace(_ wish: TableWish) throws {
        var table = Table()
        try table.apply(.sat(TableMessageTests.words("Owl")))
        let welcome = TableMessage.welcome(table, seated: wish == .watch).bytes
        let group = PlayerGroup()
        let owl = group.player("Owl")
        let puma = Session(
            SessionConfiguration(service: Lobby.service, name: DisplayName(fitting: "Puma"), role: .server),
            identity: .ephemeral(), trust: .ephemeral(), transports: [MemoryTransport(hub: group.hub)],
            loop: group.loop)
        puma.start(
            onEvent: { [unowned puma] event in
                switch event {
                case .invited(let invitation): invitation.accept()
                case .connected(let peer): try? puma.trySend(welcome, to: peer.id)
                default: break
                }
            }, onMessage: { _, _ in })
        puma.update(info: try DiscoveryInfo(["table": "open"]))
        try #require(try group.wait(until: { !owl.view.tables.isEmpty }))
        owl.lobby.join(puma.id, as: wish)
        #expect(try group.wait(until: { !owl.news.isEmpty && owl.view.place == .lobby }))
        #expect(owl.news.last == .hostMisbehaved(name: "Puma", .falseReport))
        #expect(!owl.news.contains { if case .table = $0 { true } else { false } })
    }
}
