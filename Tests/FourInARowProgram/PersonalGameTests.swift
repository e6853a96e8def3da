import NighCore
import NighLoop
import NighMemory
import NighTestKit
import ProgramSupport
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite(.timeLimit(.minutes(15))) struct PersonalGameTests {
    /// A person who has typed `request` before the lobby starts.
    private final class EarlyPerson: UserInterface {
        private let request: UserRequest

        init(_ request: UserRequest) { self.request = request }

        func start(_ view: LobbyView, onRequest: @escaping @Sendable (UserRequest) -> Void) {
            onRequest(request)
        }

        func show(_ view: LobbyView, _ news: LobbyNews?) {}
        func showRefusal(_ breach: Breach) {}
        func showMessage(_ text: String) {}
        func showCode(_ code: GuestCode) {}
        func stop() {}
    }

    @Test func `A table that was asked for before the lobby started is seen by others`() async throws {
        let hub = MemoryHub()
        func lobby(_ name: String, on loop: UVEventLoop) -> Lobby {
            Lobby(
                name: DisplayName(fitting: name), identity: .ephemeral(),
                transports: [MemoryTransport(hub: hub)], loop: loop)
        }
        let loops = [try UVEventLoop.make(), try UVEventLoop.make()]
        let (tables, seen) = AsyncStream.makeStream(of: [TableListing].self)
        let lynx = lobby("Lynx", on: loops[0])
        lynx.start { view, _ in seen.yield(view.tables) }
        let game = PersonalGame(
            PlayerSetup.Ready(
                lobby: lobby("Puma", on: loops[1]), loop: loops[1], recorder: nil,
                transports: [], optionalSchemes: []),
            interface: EarlyPerson(.host), hub: MemoryHub(), exit: ProgramExit())
        try game.start(.lobby)
        #expect(await tables.first { !$0.isEmpty }?.map(\.name) == ["Puma"])
        await game.close()
        await lynx.close()
        loops[0].shutdown()
    }
}
