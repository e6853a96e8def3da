/// What somebody did with the mouse, and where.
public struct MouseInput: Hashable, Sendable {
    /// What was done.
    public var action: Action
    /// The cell it was done at, which may lie outside of a canvas smaller than the terminal.
    public var position: CellPosition

    /// Something done at a cell.
    public init(_ action: Action, at position: CellPosition) {
        self.action = action
        self.position = position
    }

    /// What can be done with a mouse.
    public enum Action: Hashable, Sendable {
        case press(Button)
        case release(Button)
        /// Moved, with a button held down or without.
        case move(Button?)
        case wheelUp, wheelDown
    }

    /// A button; others than these three are not heard of.
    public enum Button: Hashable, Sendable {
        case left, middle, right
    }

    /// Reads the three numbers of a report as xterm's mode 1006 has them; nil for what is none of the above.
    init?(code: Int, column: Int, row: Int, isRelease: Bool) {
        guard column > 0, row > 0, code & ~0b1111_1111 == 0, code & 128 == 0 else { return nil }
        position = CellPosition(column: column - 1, row: row - 1)
        let buttons: [Button?] = [.left, .middle, .right, nil]
        let button = buttons[code & 3]
        let isMove = code & 32 != 0
        if code & 64 != 0 {
            guard !isMove, code & 3 < 2 else { return nil }
            action = code & 3 == 0 ? .wheelUp : .wheelDown
        } else if isMove {
            action = .move(button)
        } else {
            guard let button else { return nil }
            action = isRelease ? .release(button) : .press(button)
        }
    }
}
