"""What people keep about answers: boards, notes, links, and watches."""
