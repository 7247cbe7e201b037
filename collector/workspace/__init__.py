"""What people keep beside the answers: boards, notes, links, and watches."""
