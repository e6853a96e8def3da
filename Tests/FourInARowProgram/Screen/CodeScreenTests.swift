import Guests
import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

/// Tests the code for guests on a screen.
struct CodeScreenTests {
    private static func waiting(isUnicode: Bool = true) -> Scene {
        var scene = Scene(style: ScreenStyle(isUnicode: isUnicode, animates: false))
        scene.takeCode()
        return scene
    }

    /// Whether the whole picture is in a text.
    private static func isShown(in text: String) -> Bool {
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false)
        let picture = Scene.code.picture
        return rows.indices.dropLast(picture.count - 1).contains { row in
            zip(rows[row...], picture).allSatisfy { $0.contains($1) }
        }
    }

    @Test(arguments: [(80, 24), (100, 33), (100, 34), (120, 40), (200, 60), (40, 60), (68, 48)])
    func `It is shown whole while the seat is free, with the address and what it costs`(
        _ columns: Int, _ rows: Int
    ) {
        let text = Self.waiting().text(Scene.puma, TerminalSize(columns: columns, rows: rows))
        #expect(Self.isShown(in: text), "\(text)")
        for part in [
            String(Scene.code.address.prefix(36)), "xyz", "Not encrypted", "7", "Waiting for somebody",
            "hide the code",
        ] { #expect(text.contains(part), "\(text)") }
    }

    @Test(arguments: [(60, 24, true), (80, 23, true), (50, 24, true), (80, 24, false), (120, 40, false)])
    func `Without room for the picture, or with ASCII only, the address stands alone`(
        _ columns: Int, _ rows: Int, _ isUnicode: Bool
    ) {
        let size = TerminalSize(columns: columns, rows: rows)
        let text = Self.waiting(isUnicode: isUnicode).text(Scene.puma, size)
        #expect(!text.contains("█"), "\(text)")
        // The words may be broken into lines.
        #expect(text.filter { !$0.isWhitespace }.contains("Aphonemayopen\(Scene.code.address)"), "\(text)")
        #expect(text.allSatisfy { isUnicode || $0.isASCII })
    }

    @Test func `At every size the picture is whole or absent, and the board is seen`() {
        let scene = Self.waiting()
        for columns in stride(from: 29, through: 110, by: 9) {
            for rows in stride(from: 12, through: 52, by: 5) {
                let text = scene.text(Scene.puma, TerminalSize(columns: columns, rows: rows))
                #expect(text.contains("█") == Self.isShown(in: text), "\(columns) × \(rows)\n\(text)")
                #expect(text.contains("┬") && text.contains("┴"), "\(columns) × \(rows)\n\(text)")
            }
        }
    }

    @Test func `It goes away when somebody sits down, and p shows and hides it`() {
        var scene = Self.waiting()
        func isShown() -> Bool { Self.isShown(in: scene.text(Scene.puma)) }
        scene.seat()
        #expect(!isShown())
        // The line that is typed after c needs the row.
        for (key, isShownAfterIt) in [("p", true), ("c", false), ("⎋", true), ("p", false)] {
            #expect(scene.type(Scene.puma, key) == [])
            #expect(isShown() == isShownAfterIt)
        }
        scene.guestGoes()
        #expect(isShown())
        _ = scene.type(Scene.puma, "p")
        #expect(!isShown())
    }

    @Test func `It goes away when the table cannot be reached, and is no address for others`() {
        var scene = Self.waiting()
        _ = scene.type(Scene.puma, "p")
        #expect(!scene.text(Scene.puma).contains("web:"))
        _ = scene.type(Scene.puma, "p")
        // Its code is over when the table can be reached again.
        for addresses in [[], [TransportAddress(scheme: "web", value: "192.168.1.20:8080")]] {
            scene.addresses = addresses
            scene.show(Scene.puma)
            #expect(!Self.isShown(in: scene.text(Scene.puma)))
        }
    }

    @Test func `Without a code, p says when there is one`() {
        var scene = Scene()
        #expect(scene.type(Scene.puma, "p") == [])
        #expect(scene.text(Scene.puma).contains("--web"))
    }

    @Test func `The mouse finds the columns of the board also above a code`() throws {
        var scene = Self.waiting()
        scene.seat()
        let size = TerminalSize(columns: 40, rows: 60)
        _ = scene.type(Scene.puma, "p", size)
        let rows = scene.text(Scene.puma, size).split(separator: "\n", omittingEmptySubsequences: false)
        let row = try #require(rows.firstIndex { $0.contains("┼") })
        let click = MouseInput(.press(.left), at: CellPosition(column: 4, row: row))
        let requests = scene.press(Scene.puma, .mouse(click), size)
        #expect(requests == [.act(.move(try #require(Column(0))))])
    }

    @Test(arguments: [(80, ", guest, not encrypted"), (52, ", guest"), (30, "!")])
    func `A guest is marked where the name is, and when it sits down`(_ columns: Int, _ mark: String) {
        var scene = Scene()
        scene.lynxIsGuest = true
        scene.seat()
        let text = scene.text(Scene.puma, TerminalSize(columns: columns, rows: 24))
        #expect(text.contains("Lynx\(mark)"), "\(text)")
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("Lynx, guest, not encrypted, sits down"), "\(text)")
    }
}
