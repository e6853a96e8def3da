import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("Screens of the lobby")
struct LobbyScreenTests {
    private func text(_ screen: Screen) -> String {
        screen.canvas(Scene.small, now: LobbyScenes.now).text
    }

    private func press(_ screen: Screen, _ inputs: Input...) -> Screen {
        var screen = screen
        for input in inputs { _ = screen.handle(input, size: Scene.small, now: LobbyScenes.now) }
        return screen
    }

    @Test("An empty list shows that the program searches, over which transports, and what to do")
    func empty() {
        expect(
            screen: text(LobbyScenes.empty),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

               Looking for games over tcp and bluetooth…

               Nobody nearby has a table with a free seat, or one to watch. Press h to
               host a game: others who run this program will see it and can join. Or
               press b to play the machine.













             bluetooth does not work: the adapter is powered off
             h host a game  b play the machine  ? all keys  q quit
            """)
    }

    @Test("Tables are listed with seat, transports and signal")
    func threeTables() {
        expect(
            screen: text(LobbyScenes.three),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

             ▸ Lynx                    free seat     bluetooth              ▂▄▆·  aibaeaqc
               Puma                    being played  tcp, bluetooth               aeaqcaib
               Wren with a name that … free seat     tcp                          aqcaibae
















             Enter join  w watch  h host a game  b play the machine  ? all keys  q quit
            """)
    }

    @Test("While joining a table, the screen shows how to cancel")
    func joining() {
        expect(
            screen: text(LobbyScenes.joining),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

             ▸ Lynx                    free seat     bluetooth              ▂▄▆·  aibaeaqc
               Puma                    being played  tcp, bluetooth               aeaqcaib
               Wren with a name that … free seat     tcp                          aqcaibae



                                      ╔═════════════════════════╗
                                      ║ Asking Puma for a seat… ║
                                      ║ Esc cancels             ║
                                      ╚═════════════════════════╝









             Esc cancel
            """)
    }

    @Test("The screen asks for the bot's level")
    func level() {
        expect(
            screen: text(press(LobbyScenes.three, .character("b"))),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

             ▸ Lynx                    free seat     bluetooth              ▂▄▆·  aibaeaqc
               Puma                    being played  tcp, bluetooth               aeaqcaib
               Wren with a name that … free seat     tcp                          aqcaibae


                                 ╔═══════════════════════════════════╗
                                 ║ How strong should the machine be? ║
                                 ║                                   ║
                                 ║  1  2  3  4 [5] 6  7  8  9        ║
                                 ╚═══════════════════════════════════╝









             1-9 or arrows choose  Enter play  Esc cancel
            """)
    }

    @Test("All keys are shown")
    func help() {
        expect(
            screen: text(press(LobbyScenes.three, .character("?"))),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

             ▸ Lynx                    free seat     bluetooth              ▂▄▆·  aibaeaqc
               Pum ╔════════════════════════════════════════════════════════════════╗ caib
               Wre ║ In the lobby                                                   ║ ibae
                   ║   up, down         choose a table     Enter  join it, or watch ║
                   ║   w  watch it      h  host a game     b  play the machine      ║
                   ║ At a table                                                     ║
                   ║   left, right, Home, End              choose a column          ║
                   ║   1-7, or a to g, but C with Shift    choose it, again to drop ║
                   ║   Enter, space, down, a click         drop a disc there        ║
                   ║   c  say something     x  resign      r  play again            ║
                   ║   p  show or hide the code for phones (with --web)             ║
                   ║ Everywhere                                                     ║
                   ║   q  leave, or quit    Ctrl-C  quit   Ctrl-L  redraw           ║
                   ║   Ctrl-Z  suspend                     ?  these keys            ║
                   ╚════════════════════════════════════════════════════════════════╝




             any key closes this
            """)
    }

    @Test("The reasons why joining failed stay readable on several lines, and then disappear")
    func couldNotJoin() {
        var screen = LobbyScenes.three
        let view = screen.view
        let declined = NighError(.inviting, .declined("after lunch"), peer: "Lynx")
        let unreachable = NighError(
            .connecting, .unreachable, peer: "Puma",
            advice: "put both devices into the same network, or give each of them Bluetooth")
        screen.update(view, .couldNotJoin(name: "Lynx", declined), now: LobbyScenes.now)
        screen.update(view, .couldNotJoin(name: "Puma", unreachable), now: LobbyScenes.now)
        expect(
            screen: text(screen),
            """
             Four in a Row                                                     Owl ambqgayd
            ────────────────────────────────────────────────────────────────────────────────
             Games near you

             ▸ Lynx                    free seat     bluetooth              ▂▄▆·  aibaeaqc
               Puma                    being played  tcp, bluetooth               aeaqcaib
               Wren with a name that … free seat     tcp                          aqcaibae












             Lynx said no: after lunch
             could not get to the table of Puma: the device cannot be reached; put both
             devices into the same network, or give each of them Bluetooth

             Enter join  w watch  h host a game  b play the machine  ? all keys  q quit
            """)
        let later = LobbyScenes.now + .seconds(30)
        expect(screen: screen.canvas(Scene.small, now: later).text, text(LobbyScenes.three))
    }

    @Test("A terminal that is too small shows the size that the game needs")
    func tooSmall() {
        let size = TerminalSize(columns: 40, rows: 10)
        expect(
            screen: LobbyScenes.three.canvas(size, now: LobbyScenes.now).text,
            """



            This game needs 29 x 12 characters, and
            this terminal shows 40 x 10. Ctrl-C
            quits.




            """)
    }
}
