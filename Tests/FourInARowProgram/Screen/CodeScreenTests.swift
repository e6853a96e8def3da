import Guests
import NighCore
import Terminal
import Testing

@testable import FourInARow
@testable import fourinarow

@Suite("The code for guests on a screen")
struct CodeScreenTests {
    private static func waiting(isUnicode: Bool = true) -> Scene {
        var scene = Scene(style: ScreenStyle(isUnicode: isUnicode, animates: false))
        scene.takeCode()
        return scene
    }

    /// Where the whole picture is in a text; nil if it is not there.
    private static func place(in text: String) -> (column: Int, row: Int)? {
        let rows = text.split(separator: "\n", omittingEmptySubsequences: false).map { Array<Character>($0) }
        let picture = Scene.code.picture.map { Array<Character>($0) }
        for (row, line) in rows.enumerated() where row + picture.count <= rows.count {
            guard let column = line.firstIndex(of: "█") else { continue }
            let isWhole = zip(rows[row...], picture).allSatisfy { row, line in
                row.dropFirst(column).prefix(line.count).elementsEqual(line)
            }
            if isWhole { return (column, row) }
        }
        return nil
    }

    /// The words of a text that may be broken into lines.
    private static func words(_ text: String) -> String { text.filter { !$0.isWhitespace } }

    @Test(
        "It is shown whole while the seat is free, with the address and what it costs",
        arguments: [(80, 24), (100, 33), (100, 34), (120, 40), (200, 60), (40, 60), (68, 48)])
    func shown(_ columns: Int, _ rows: Int) throws {
        let text = Self.waiting().text(Scene.puma, TerminalSize(columns: columns, rows: rows))
        #expect(Self.place(in: text) != nil, "\(text)")
        #expect(text.contains(Scene.code.address.prefix(36)) && text.contains("xyz"), "\(text)")
        #expect(text.contains("Not encrypted") && text.contains("7"), "\(text)")
        #expect(text.contains("Waiting for somebody") && text.contains("hide the code"), "\(text)")
    }

    @Test(
        "Without room for the picture, or with ASCII only, the address stands alone",
        arguments: [(60, 24, true), (80, 23, true), (50, 24, true), (80, 24, false), (120, 40, false)])
    func addressAlone(_ columns: Int, _ rows: Int, _ isUnicode: Bool) {
        let size = TerminalSize(columns: columns, rows: rows)
        let text = Self.waiting(isUnicode: isUnicode).text(Scene.puma, size)
        #expect(!text.contains("█"), "\(text)")
        #expect(Self.words(text).contains(Self.words("A phone may open \(Scene.code.address)")), "\(text)")
        #expect(text.allSatisfy { isUnicode || $0.isASCII })
    }

    @Test("At every size the picture is whole or absent, and the board is seen")
    func everySize() {
        let scene = Self.waiting()
        for columns in stride(from: 29, through: 110, by: 9) {
            for rows in stride(from: 12, through: 52, by: 5) {
                let size = TerminalSize(columns: columns, rows: rows)
                let text = scene.text(Scene.puma, size)
                let hasPicture = text.contains("█")
                #expect(hasPicture == (Self.place(in: text) != nil), "\(columns) × \(rows)\n\(text)")
                #expect(text.contains("┬") && text.contains("┴"), "\(columns) × \(rows)\n\(text)")
            }
        }
    }

    @Test("It goes away when somebody sits down, p shows and hides it, and it is back when the seat is free")
    func toggling() {
        var scene = Self.waiting()
        func isShown() -> Bool { Self.place(in: scene.text(Scene.puma)) != nil }
        scene.seat()
        #expect(!isShown())
        #expect(scene.type(Scene.puma, "p") == [])
        #expect(isShown())
        // What is typed needs the row.
        _ = scene.type(Scene.puma, "c")
        #expect(!isShown())
        _ = scene.press(Scene.puma, .key(.escape))
        #expect(isShown())
        #expect(scene.type(Scene.puma, "p") == [])
        #expect(!isShown())
        scene.guestGoes()
        #expect(isShown())
        _ = scene.type(Scene.puma, "p")
        #expect(!isShown())
    }

    @Test("It goes away when the table cannot be reached any more, and its address is not one for others")
    func unreachable() {
        var scene = Self.waiting()
        _ = scene.type(Scene.puma, "p")
        #expect(!scene.text(Scene.puma).contains("web:"))
        _ = scene.type(Scene.puma, "p")
        scene.addresses = []
        scene.show(Scene.puma, LobbyNews?.none)
        #expect(Self.place(in: scene.text(Scene.puma)) == nil)
        scene.addresses = [TransportAddress(scheme: "web", value: "192.168.1.20:8080")]
        scene.show(Scene.puma, LobbyNews?.none)
        #expect(Self.place(in: scene.text(Scene.puma)) == nil, "that code is over")
    }

    @Test("Without a code, p says when there is one")
    func without() {
        var scene = Scene()
        #expect(scene.type(Scene.puma, "p") == [])
        #expect(scene.text(Scene.puma).contains("--web"))
    }

    @Test("The mouse finds the columns of the board also above a code")
    func mouse() throws {
        var scene = Self.waiting()
        scene.seat()
        let size = TerminalSize(columns: 40, rows: 60)
        _ = scene.press(Scene.puma, .character("p"), size)
        let rows = scene.text(Scene.puma, size).split(separator: "\n", omittingEmptySubsequences: false)
        let row = try #require(rows.firstIndex { $0.contains("┼") })
        let click = MouseInput(.press(.left), at: CellPosition(column: 4, row: row))
        let requests = scene.press(Scene.puma, .mouse(click), size)
        #expect(requests == [.act(.move(try #require(Column(0))))])
    }

    @Test("A guest is marked where the name is, and when it sits down", arguments: [80, 52, 30])
    func mark(_ columns: Int) {
        var scene = Scene()
        scene.lynxIsGuest = true
        scene.seat()
        let text = scene.text(Scene.puma, TerminalSize(columns: columns, rows: 24))
        let mark = columns == 80 ? ", guest, not encrypted" : columns == 52 ? ", guest" : "!"
        #expect(text.contains("Lynx\(mark)"), "\(text)")
        let words = text.replacing("\n", with: " ").split(separator: " ").joined(separator: " ")
        #expect(words.contains("Lynx, guest, not encrypted, sits down"), "\(text)")
    }
}
