/// An action of the user with the mouse, and its cell.
public struct MouseInput: Hashable, Sendable {
    /// The user's action.
    public var action: Action
    /// The cell of the action. It may lie outside of a canvas that is smaller than the terminal.
    public var position: CellPosition

    /// Creates an action at a cell.
    public init(_ action: Action, at position: CellPosition) {
        self.action = action
        self.position = position
    }

    /// An action with a mouse.
    public enum Action: Hashable, Sendable {
        case press(Button)
        case release(Button)
        /// Moved, with or without a button held down.
        case move(Button?)
        case wheelUp, wheelDown
    }

    /// A button. Other buttons than these three are not reported.
    public enum Button: Hashable, Sendable {
        case left, middle, right
    }

    /// Decodes the three numbers of a report in xterm's mode 1006. Returns nil for anything that is none of the above.
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
